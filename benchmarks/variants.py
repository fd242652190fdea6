"""Are the policies' parameters well chosen? Simulated users are served by variants of them.

    .venv/bin/python -m benchmarks.variants                  # 100 lives of each persona: minutes on two cores

Each variant differs from a policy that is served in one thing. Its gain is over `egreedy/v2`, of the same lives, with
the 95 % interval over seeds; the worst persona is the one that loses most by it. The seeds are among those that set
the gate's thresholds, so whatever is chosen by this table still has to pass a gate on others.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

from benchmarks.parts.table import out, show
from tipbench.recommender.features import v2
from tipbench.recommender.features.interface import Features
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import LONGEST_DWELL_S, V2
from tipbench.recommender.policies.egreedy import DECAY, EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.linucb import LinUcb
from tipbench.recommender.records import Request
from tipbench.recommender.simulation.experiment import Plan, Results, simulate
from tipbench.recommender.simulation.rollout import ARMS, Arm
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.statistics.drift import t_quantile_at
from tipbench.statistics.paired import difference

FIRST_SEED = 2_000
SERVED = ARMS["egreedy/v2"]
_DWELL = V2.names.index("dwell")


def linear_dwell(request: Request) -> list[list[float]]:
    """Version 2, but seconds count alike, however many there are."""
    rows = v2.rows(request)
    for row in rows:
        seconds = exp((row[_DWELL] + 1) / 2 * log(1 + LONGEST_DWELL_S)) - 1
        row[_DWELL] = 2 * seconds / LONGEST_DWELL_S - 1
    return rows


@dataclass(frozen=True)
class Shrunk:
    """Version 2 with another weight of what is usual."""

    shrinkage: float

    def __call__(self, request: Request) -> list[list[float]]:
        served, v2._SHRINKAGE = v2._SHRINKAGE, self.shrinkage
        try:
            return v2.rows(request)
        finally:
            v2._SHRINKAGE = served


@dataclass(frozen=True)
class WithCategories:
    """Version 2, and a dimension for each category: it sees what the mean per category sees, too."""

    categories: tuple[str, ...]

    def __call__(self, request: Request) -> list[list[float]]:
        rows = v2.rows(request)
        for row, candidate in zip(rows, request.candidates, strict=True):
            row.extend(float(category == candidate.category) for category in self.categories)
        return rows


def policies(categories: tuple[str, ...]) -> Iterator[Policy[Any]]:
    yield ARMS["category-mean"].policy
    for ridge in (0.3, 3.0, 10.0):
        yield EGreedy(f"egreedy/v2, λ = {ridge:g}", V2, ridge=ridge)
    for floor in (0.02, 0.1):
        yield EGreedy(f"egreedy/v2, ε ≥ {floor:g}", V2, decay=replace(DECAY, floor=floor))
    for half_after in (20.0, 100.0):
        yield EGreedy(f"egreedy/v2, ε halves after {half_after:g}", V2, decay=replace(DECAY, half_after=half_after))
    for shrinkage in (1.0, 20.0):
        yield EGreedy(f"egreedy/v2, drawn by {shrinkage:g}", Features(f"v2/{shrinkage:g}", V2.names, Shrunk(shrinkage)))
    yield EGreedy("egreedy/v2, dwell linear", Features("v2-linear", V2.names, linear_dwell))
    names = (*V2.names, *categories)
    yield EGreedy("egreedy/v2 and categories", Features("v2-categories", names, WithCategories(categories)))
    yield EGreedy("egreedy", V1)
    for alpha in (0.3, 1.0, 2.0):
        yield LinUcb(f"linucb, α = {alpha:g}", V1, alpha=alpha)
    for alpha in (0.1, 0.3, 1.0):
        yield LinUcb(f"linucb on v2, α = {alpha:g}", V2, alpha=alpha)
    yield LinUcb("linucb on v2 and categories, α = 0.3", Features("v2-c", names, WithCategories(categories)), alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    world = built_in_world(2)
    arms = (SERVED, *(Arm(policy.name, policy) for policy in policies(world.categories)))
    plan = Plan(world, arms, range(FIRST_SEED, FIRST_SEED + given.seeds), given.steps, 10)
    with out.status(f"{plan.decisions:,} decisions"):
        results = simulate(plan, given.workers, lambda _: None)
    show(
        f"Rewards of {given.seeds} lives of {len(world.personas)} personas, {given.steps} decisions each",
        ("policy", "reward", "gain over egreedy/v2", "worst persona"),
        [_row(results, arm) for arm in arms],
    )


def _row(results: Results, arm: Arm) -> tuple[str, str, str, str]:
    reward = f"{results.means(arm.name).mean():.4f}"
    if arm is SERVED:
        return arm.name, reward, "", ""
    gains = results.means(arm.name) - results.means(SERVED.name)
    gain = difference(gains.mean(axis=0))
    margin = t_quantile_at(0.975, gain.degrees) * gain.error
    worst = int(gains.mean(axis=1).argmin())
    named = f"{results.plan.world.personas[worst].name} {gains[worst].mean():+.3f}"
    return arm.name, reward, f"{gain.mean:+.4f} ± {margin:.4f}", named


if __name__ == "__main__":
    main()
