"""Stored gate results, one file each in TIPBENCH_HOME/recommender/gates."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tipbench.core.paths import gates_folder
from tipbench.core.version import __version__
from tipbench.recommender.promotion.immutable_records import Record, RecordFolder, RecordPart, write_record
from tipbench.recommender.simulation.gate import RULES

SCHEMA = 1


class GateWorld(RecordPart):
    name: str
    digest: str


class GateSeeds(RecordPart):
    first: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1


class SimulationPlan(RecordPart):
    """All that a simulation's results depend on."""

    simulator: int
    seeds: GateSeeds
    steps: int
    offered: int
    world: GateWorld
    arms: list[dict[str, Any]]


class GatePlan(SimulationPlan):
    arms: Annotated[list[dict[str, Any]], Field(min_length=2)]  # the candidate, the incumbent, and control arms


class GateCondition(RecordPart):
    name: str
    passed: bool
    reason: str


class GatePooled(RecordPart):
    gain: float
    lower_bound: float


class GateVerdict(RecordPart):
    passed: bool
    pooled: GatePooled
    conditions: list[GateCondition]


class GateRecord(Record):
    """The part of a stored gate that a promotion depends on."""

    plan: GatePlan
    rules: dict[str, float]
    verdict: GateVerdict

    @property
    def candidate(self) -> Mapping[str, Any]:
        return self.plan.arms[0]

    @property
    def incumbent(self) -> Mapping[str, Any]:
        return self.plan.arms[1]


def gate_records(home: Path) -> RecordFolder[GateRecord]:
    return RecordFolder(gates_folder(home), GateRecord, "gate", "run the gate again")


def store_gate(home: Path, result: Mapping[str, Any], clock: Callable[[], float] = time.time) -> str:
    """Store a gate's result; return the record's id."""
    content = {
        "schema": SCHEMA,
        "made_ms": round(clock() * 1000),
        "tipbench": __version__,
        "plan": result["plan"],
        "rules": asdict(RULES),
        "verdict": result["gate"],
        "outcome": {key: value for key, value in result.items() if key != "gate"},
    }
    return write_record(gates_folder(home), content)
