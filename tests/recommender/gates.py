"""Gates and replays that nobody had to hold, and acts, for tests."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tipbench.recommender.prior.interface import ReadPrior
from tipbench.recommender.promotion.gate_records import store_gate
from tipbench.recommender.promotion.interface import Act
from tipbench.recommender.replay.record import store_replay
from tipbench.recommender.simulation.experiment import Plan
from tipbench.recommender.simulation.gate import lineup_of
from tipbench.recommender.simulation.outcome import arm_data, plan_data
from tipbench.recommender.simulation.rollout import arm
from tipbench.server.jobs.simulation_asked import built_in_world

HELD = 1_700_000_000  # when the first was: years before any "now" of a test, however many are made
_seconds = itertools.count(HELD)
Change = Callable[[dict[str, Any]], object]


def next_second() -> int:
    """Later than all that were asked for before in this process."""
    return next(_seconds)


def a_result(
    candidate: str = "egreedy/v2",
    incumbent: str = "egreedy",
    passed: bool = True,
    read_prior: ReadPrior | None = None,
) -> dict[str, Any]:
    """As a simulation gives it to be kept, but for what no promotion looks at."""
    world = built_in_world()
    lineup = lineup_of(arm(candidate, read_prior), arm(incumbent, read_prior), world)
    plan = plan_data(Plan(world, lineup.arms, range(10_000, 10_030), 300, 10))
    conditions = [{"name": "gains overall", "passed": passed, "reason": "it gains what it gains"}]
    pooled = {"gain": 0.1, "lower_bound": 0.08}
    verdict = {"passed": passed, "pooled": pooled, "conditions": conditions, "personas": [], "roles": lineup.roles}
    return {"schema": 1, "plan": plan, "gate": verdict}


def held_gate(
    home: Path,
    candidate: str = "egreedy/v2",
    incumbent: str = "egreedy",
    passed: bool = True,
    change: Change | None = None,
    read_prior: ReadPrior | None = None,
) -> str:
    """The id of a record that is newer than all that were made before."""
    result = a_result(candidate, incumbent, passed, read_prior)
    if change:
        change(result)
    return store_gate(home, result, next_second)


def held_replay(home: Path, status: str, candidate: str = "egreedy/v2") -> str:
    found = {
        "candidate": arm_data(arm(candidate)),
        "verdict": {"passed": status == "passed", "status": status, "reason": "by DR it earns what it earns"},
    }
    return store_replay(home, found, next_second() * 1000)


def promoted(left: str, to: str, at_ms: int = 1) -> Act:
    return Act(at_ms=at_ms, act="promote", left=left, to=to, gate="0" * 16, replay=None, candidate=arm_data(arm(to)))


def rolled_back(left: str, to: str, at_ms: int = 2) -> Act:
    return Act(at_ms=at_ms, act="rollback", left=left, to=to, gate=None, replay=None, candidate=arm_data(arm(to)))


V2 = promoted("egreedy", "egreedy/v2")
LINUCB = promoted("egreedy/v2", "linucb", 3)
BACK = rolled_back("egreedy/v2", "egreedy")
