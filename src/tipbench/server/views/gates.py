"""The gates that were held: a list, and one with all its reasons."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tipbench.core.errors import NotFound, StateError, StateRefused
from tipbench.core.paths import gates_folder
from tipbench.recommender.promotion.gate_records import GateCondition, GatePooled, read_gate
from tipbench.recommender.promotion.immutable_records import read_record
from tipbench.server.views.simulations import Outcome, Plan

_ID = "[0-9a-f]" * 16 + ".json"
_Mark = tuple[int, int]
Line = TypeVar("Line")


# Lists of records that are written once: each file is read when it is new, and never again.


class RecordIndex(Generic[Line]):
    """A line for each record of a folder, in no order. Safe to be asked by many threads."""

    def __init__(self, folder: Path, line_of: Callable[[str], Line]) -> None:
        self._folder = folder
        self._line_of = line_of
        self._turn = threading.Lock()
        self._lines: dict[str, tuple[_Mark, Line]] = {}

    def read(self) -> list[Line]:
        with self._turn:
            found: dict[str, tuple[_Mark, Line]] = {}
            for path in self._folder.glob(_ID):
                with suppress(FileNotFoundError, NotFound):  # somebody has just removed it
                    found[path.stem] = self._known(path)
            self._lines = found
            return [line for _, line in found.values()]

    def _known(self, path: Path) -> tuple[_Mark, Line]:
        stat = path.stat()
        mark = (stat.st_mtime_ns, stat.st_size)
        known = self._lines.get(path.stem)
        return known if known and known[0] == mark else (mark, self._line_of(path.stem))


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class PersonaGain(_Part):
    persona: str
    control: bool
    gain: float
    lower_bound: float
    wins: bool


class Verdict(_Part):
    passed: bool
    pooled: GatePooled
    conditions: list[GateCondition]
    personas: list[PersonaGain]


class Gate(_Part):
    """A gate's record, as much of it as is shown."""

    id: str
    made_ms: int
    tipbench: str  # the version that held it
    plan: Plan
    rules: dict[str, float]
    verdict: Verdict
    outcome: Outcome

    @property
    def candidate(self) -> str:
        return str(self.plan.arms[0]["name"])

    @property
    def incumbent(self) -> str:
        return str(self.plan.arms[1]["name"])


@dataclass(frozen=True)
class GateLine:
    """One gate in the list."""

    id: str
    made_ms: int
    candidate: str
    incumbent: str
    passed: bool
    gain: float
    lower_bound: float
    seeds: int
    steps: int
    failed: tuple[str, ...]  # conditions
    problem: str = ""  # why its record can't be read; then nothing else is known


class Gates:
    """Records don't change, so each is read once. Safe to be asked by many threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = gates_folder(home)
        self._lines = RecordIndex(self._folder, self._line)

    def lines(self) -> list[GateLine]:
        """The newest first; those that can't be read are named all the same, at the end."""
        return sorted(self._lines.read(), key=lambda one: (-one.made_ms, one.id))

    def data(self, gate_id: str) -> Mapping[str, Any]:
        """The record, as it was kept."""
        try:
            return read_record(self._folder, gate_id)
        except NotFound:
            raise NotFound(f"there is no gate {gate_id}; those that there are stand in the list of gates") from None

    def gate(self, gate_id: str) -> Gate:
        """Raises StateError for a record that was edited, or that another version has written."""
        data = self.data(gate_id)
        try:
            return Gate.model_validate(data)
        except ValidationError as error:
            raise StateRefused(
                f"the gate {gate_id} was kept in a form that this tipbench does not know; hold it again"
            ) from error

    def _line(self, name: str) -> GateLine:
        try:
            gate = read_gate(self._home, name)
        except StateError as error:
            return GateLine(name, 0, "", "", False, 0.0, 0.0, 0, 0, (), str(error))
        verdict = gate.verdict
        failed = tuple(one.name for one in verdict.conditions if not one.passed)
        return GateLine(
            *(gate.id, gate.made_ms, str(gate.candidate.get("name")), str(gate.incumbent.get("name"))),
            *(verdict.passed, verdict.pooled.gain, verdict.pooled.lower_bound),
            *(gate.plan.seeds.count, gate.plan.steps, failed),
        )
