"""Replays of the decision log: a list, and a single replay with its estimates and their basis."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tipbench.core.errors import StateError
from tipbench.recommender.promotion.immutable_records import RecordIndex, RecordPart
from tipbench.recommender.replay.record import ReplayRecord, replay_records
from tipbench.recommender.replay.verdict import Status


class Estimate(RecordPart):
    """A mean reward per decision and its margin; None for what can't be estimated."""

    mean: float | None
    margin: float | None


class Estimated(RecordPart):
    value: Estimate
    gain: Estimate


class Log(RecordPart):
    folder: str = ""  # not in the oldest records
    decisions: int
    first_ms: int | None
    last_ms: int | None
    left_out: dict[str, int]


class Rules(RecordPart):
    least_effective: float
    fewest_users: int


class Replay(ReplayRecord):
    """A replay's record, including what only pages show."""

    tipbench: str  # the version that made it
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


@dataclass(frozen=True)
class ReplayLine:
    """One replay in the list."""

    id: str
    made_ms: int
    candidate: str
    status: Status | Literal[""]
    reason: str
    problem: str = ""  # why its record can't be read; everything else is then empty


class Replays:
    """Reads replays' records. Records never change, so each is read once. Thread-safe."""

    def __init__(self, home: Path) -> None:
        self._records = replay_records(home)
        self._lines = RecordIndex(self._records.path, self._line)

    def lines(self) -> list[ReplayLine]:
        """Return all replays, newest first; those that can't be read are at the end."""
        return sorted(self._lines.read(), key=lambda one: (-one.made_ms, one.id))

    def data(self, replay_id: str) -> Mapping[str, Any]:
        """Return the record as it was stored."""
        return self._records.data(replay_id)

    def replay(self, replay_id: str) -> Replay:
        """Return the replay; raise StateError if its record was edited or written by another version."""
        return self._records.read_as(Replay, replay_id)

    def _line(self, name: str) -> ReplayLine:
        try:
            found = self._records.read(name)
        except StateError as error:
            return ReplayLine(name, 0, "", "", "", str(error))
        verdict = found.verdict
        return ReplayLine(found.id, found.made_ms, str(found.candidate.get("name")), verdict.status, verdict.reason)
