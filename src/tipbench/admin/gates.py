"""The gates that were held: a list, and one with all its reasons."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tipbench.admin.outcomes import Outcome, Plan
from tipbench.bandit.gate_records import GateCondition, GatePooled, gates_folder, read_gate
from tipbench.bandit.kept_records import read_record
from tipbench.errors import NotFound, StateError, StateRefused

_ID = "[0-9a-f]" * 16 + ".json"
_Mark = tuple[int, int]


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
    failed: tuple[str, ...]  # conditions
    problem: str = ""  # why its record can't be read; then nothing else is known


class Gates:
    """Records don't change, so each is read once. Safe to be asked by many threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = gates_folder(home)
        self._turn = threading.Lock()
        self._lines: dict[str, tuple[_Mark, GateLine]] = {}

    def lines(self) -> list[GateLine]:
        """The newest first; those that can't be read are named all the same, at the end."""
        with self._turn:
            found = {path.stem: path.stat() for path in self._folder.glob(_ID)}
            for name, stat in found.items():
                mark = (stat.st_mtime_ns, stat.st_size)
                if name not in self._lines or self._lines[name][0] != mark:
                    self._lines[name] = (mark, self._line(name))
            self._lines = {name: self._lines[name] for name in found}
            return sorted((line for _, line in self._lines.values()), key=lambda one: (-one.made_ms, one.id))

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
            return GateLine(name, 0, "", "", False, 0.0, 0.0, (), str(error))
        verdict = gate.verdict
        failed = tuple(one.name for one in verdict.conditions if not one.passed)
        return GateLine(
            *(gate.id, gate.made_ms, str(gate.candidate["name"]), str(gate.incumbent["name"])),
            *(verdict.passed, verdict.pooled.gain, verdict.pooled.lower_bound, failed),
        )
