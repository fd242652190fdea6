"""Gates that were run: a list, and a single gate with all its reasons."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tipbench.core.errors import StateError
from tipbench.recommender.promotion.gate_records import GateRecord, GateVerdict, gate_records
from tipbench.recommender.promotion.immutable_records import RecordIndex, RecordPart
from tipbench.server.views.simulations import Outcome


class PersonaGain(RecordPart):
    persona: str
    control: bool
    gain: float
    lower_bound: float
    wins: bool


class Score(RecordPart):
    """What an arm earns per decision, by stage of a life; a margin is half the width of the 95 % interval."""

    name: str
    means: list[float]
    margins: list[float]


class Scorecard(RecordPart):
    stages: list[str]
    arms: list[Score]


class Verdict(GateVerdict):
    """Gates from before version 3 have neither a sentence nor roles nor a scorecard."""

    personas: list[PersonaGain]
    says: str = ""
    roles: Mapping[str, str] = {}
    scorecard: Scorecard | None = None

    def role(self, arm: str, number: int) -> str:
        """Return what an arm is there for; `number` is its index among the arms."""
        return self.roles.get(arm) or ("candidate", "incumbent", "must fail")[min(number, 2)]


class Gate(GateRecord):
    """A gate's record, including what only pages show."""

    tipbench: str  # the version that ran it
    verdict: Verdict
    outcome: Outcome

    @property
    def candidate_name(self) -> str:
        return str(self.candidate.get("name"))

    @property
    def incumbent_name(self) -> str:
        return str(self.incumbent.get("name"))


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
    problem: str = ""  # why its record can't be read; everything else is then empty


class Gates:
    """Reads gates' records. Records never change, so each is read once. Thread-safe."""

    def __init__(self, home: Path) -> None:
        self._records = gate_records(home)
        self._lines = RecordIndex(self._records.path, self._line)

    def lines(self) -> list[GateLine]:
        """Return all gates, newest first; those that can't be read are at the end."""
        return sorted(self._lines.read(), key=lambda one: (-one.made_ms, one.id))

    def data(self, gate_id: str) -> Mapping[str, Any]:
        """Return the record as it was stored."""
        return self._records.data(gate_id)

    def gate(self, gate_id: str) -> Gate:
        """Return the gate; raise StateError if its record was edited or written by another version."""
        return self._records.read_as(Gate, gate_id)

    def _line(self, name: str) -> GateLine:
        try:
            gate = self._records.read(name)
        except StateError as error:
            return GateLine(name, 0, "", "", False, 0.0, 0.0, 0, 0, (), str(error))
        verdict = gate.verdict
        failed = tuple(one.name for one in verdict.conditions if not one.passed)
        return GateLine(
            *(gate.id, gate.made_ms, str(gate.candidate.get("name")), str(gate.incumbent.get("name"))),
            *(verdict.passed, verdict.pooled.gain, verdict.pooled.lower_bound),
            *(gate.plan.seeds.count, gate.plan.steps, failed),
        )
