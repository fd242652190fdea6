"""What gates found, a file each in TIPBENCH_HOME/recommender/gates."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipbench.core.errors import StateRefused
from tipbench.core.paths import gates_folder
from tipbench.core.version import __version__
from tipbench.recommender.promotion.immutable_records import read_record, read_records, write_record
from tipbench.recommender.simulation.gate import RULES

SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class GateWorld(_Part):
    name: str
    digest: str


class GateSeeds(_Part):
    first: int
    count: int


class GatePlan(_Part):
    simulator: int
    seeds: GateSeeds
    steps: int
    offered: int
    world: GateWorld
    arms: Annotated[list[dict[str, Any]], Field(min_length=2)]  # the candidate, the incumbent, and those that must fail


class GateCondition(_Part):
    name: str
    passed: bool
    reason: str


class GatePooled(_Part):
    gain: float
    lower_bound: float


class GateVerdict(_Part):
    passed: bool
    pooled: GatePooled
    conditions: list[GateCondition]


class GateRecord(_Part):
    """As much of it as a promotion depends on."""

    schema_version: Literal[1] = Field(alias="schema")
    id: str
    made_ms: int
    plan: GatePlan
    rules: dict[str, float]
    verdict: GateVerdict

    @property
    def candidate(self) -> Mapping[str, Any]:
        return self.plan.arms[0]

    @property
    def incumbent(self) -> Mapping[str, Any]:
        return self.plan.arms[1]


def keep_gate(home: Path, result: Mapping[str, Any], clock: Callable[[], float] = time.time) -> str:
    """Gives the record's id."""
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


def read_gate(home: Path, name: str) -> GateRecord:
    """Raises StateDamaged for one that was edited."""
    return _gate(read_record(gates_folder(home), name))


def read_gates(home: Path) -> list[GateRecord]:
    """Newest first."""
    found = map(_gate, read_records(gates_folder(home)))
    return sorted(found, key=lambda gate: (gate.made_ms, gate.id), reverse=True)


def _gate(data: dict[str, Any]) -> GateRecord:
    try:
        return GateRecord.model_validate(data)
    except ValidationError as error:
        raise StateRefused(
            f"the gate {data['id']} was kept in a form that this tipbench does not know; remove it from "
            "recommender/gates in TIPBENCH_HOME, and hold it again"
        ) from error
