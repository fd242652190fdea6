"""The replays of the decision log: a list, and one with its estimates and what they rest on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tipbench.core.errors import NotFound, StateError, StateRefused
from tipbench.core.paths import replays_folder
from tipbench.recommender.promotion.immutable_records import read_record
from tipbench.recommender.replay.record import ReplayVerdict, read_replay
from tipbench.recommender.replay.verdict import Status
from tipbench.server.views.gates import RecordIndex


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Candidate(_Part):
    name: str
    feature_version: str


class Estimate(_Part):
    """A reward a decision; None for what can't be told."""

    mean: float | None
    margin: float | None


class Estimated(_Part):
    value: Estimate
    gain: Estimate


class Log(_Part):
    folder: str = ""  # records of the first replays don't name it
    decisions: int
    first_ms: int | None
    last_ms: int | None
    left_out: dict[str, int]


class Rules(_Part):
    least_effective: float
    fewest_users: int


class Replay(_Part):
    """A replay's record, as much of it as is shown."""

    id: str
    made_ms: int
    tipbench: str  # the version that made it
    candidate: Candidate
    share: float
    log: Log
    learned: int
    evaluated: int
    with_profile: int
    users: int
    rules: Rules
    decides: str
    effective_sample: float
    largest_weight: float
    served: Estimate | None  # None: there was nothing to estimate from
    estimates: dict[str, Estimated]
    verdict: ReplayVerdict


@dataclass(frozen=True)
class ReplayLine:
    """One replay in the list."""

    id: str
    made_ms: int
    candidate: str
    status: Status | Literal[""]
    reason: str
    problem: str = ""  # why its record can't be read; then nothing else is known


class Replays:
    """Records don't change, so each is read once. Safe to be asked by many threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = replays_folder(home)
        self._lines = RecordIndex(self._folder, self._line)

    def lines(self) -> list[ReplayLine]:
        """The newest first; those that can't be read are named all the same, at the end."""
        return sorted(self._lines.read(), key=lambda one: (-one.made_ms, one.id))

    def data(self, replay_id: str) -> Mapping[str, Any]:
        """The record, as it was kept."""
        try:
            return read_record(self._folder, replay_id)
        except NotFound:
            raise NotFound(
                f"there is no replay {replay_id}; those that there are stand in the list of replays"
            ) from None

    def replay(self, replay_id: str) -> Replay:
        """Raises StateError for a record that was edited, or that another version has written."""
        data = self.data(replay_id)
        try:
            return Replay.model_validate(data)
        except ValidationError as error:
            raise StateRefused(
                f"the replay {replay_id} was kept in a form that this tipbench does not know; replay again"
            ) from error

    def _line(self, name: str) -> ReplayLine:
        try:
            found = read_replay(self._home, name)
        except StateError as error:
            return ReplayLine(name, 0, "", "", "", str(error))
        verdict = found.verdict
        return ReplayLine(found.id, found.made_ms, str(found.candidate.get("name")), verdict.status, verdict.reason)
