"""How far does each part of what there is to know get, from random choices to an oracle that knows everything?

    .venv/bin/python -m benchmarks.world                   # four minutes on one core
    .venv/bin/python -m benchmarks.world --seeds 10        # a look

In both built-in worlds, oracles of one part alone (the user's taste by category, the hour, the focus, the tip, what the
user is tired of) and policies serve the same lives. A share is (policy - random) / (oracle - random), with a 95 %
interval over seeds; for policies also by stage of the life. Promise: in version 3 no part alone gets more than 70 % of
the way. The seeds are those that the world was calibrated on, unless others are given.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from itertools import product

import numpy as np

from benchmarks.parts.oracles import EVERYTHING, ORACLES, RANDOM, Oracles
from benchmarks.parts.table import out, show
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.experiment import Plan, simulate
from tipbench.recommender.simulation.process_map import process_map
from tipbench.recommender.simulation.rollout import arm
from tipbench.recommender.simulation.world import World
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.statistics.drift import t_quantile

MOST = 0.7
POLICIES = ("egreedy", "linucb", "egreedy/v2", "category-mean", "most-popular")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    far = [_measure(built_in_world(version), seeds, given.steps, given.workers) for version in (2, 3)][-1]
    too_far = [name for name, share in far.items() if share > MOST]
    out.print(f"Parts that get more than {MOST:.0%} of the way in version 3: {', '.join(too_far) or 'none'}")
    return 1 if too_far else 0


def _measure(world: World, seeds: range, steps: int, workers: int) -> dict[str, float]:
    """Show how far oracles and policies get; return the share of each oracle of one part alone."""
    lives = list(product(range(len(world.personas)), seeds))
    earned = dict(process_map(Oracles(world, steps, 10), lives, workers))
    by_oracle = np.array([earned[life] for life in lives]).reshape(len(world.personas), len(seeds), -1).mean(axis=0)
    oracles: dict[str, Floats] = dict(zip(ORACLES, by_oracle.T, strict=True))
    plan = Plan(world, tuple(arm(name, world=world) for name in POLICIES), seeds, steps, 10)
    results = simulate(plan, workers, lambda _: None)
    rows = [_row(name, rewards, oracles) for name, rewards in oracles.items()]
    for name in POLICIES:
        by_stage = results.stages(name).mean(axis=(0, 1))
        rows.append((*_row(name, results.means(name).mean(axis=0), oracles), *(f"{mean:.3f}" for mean in by_stage)))
    stages = [f"{stage.start + 1}–{stage.stop}" for stage in plan.stages]
    title = (
        f"Version {world.simulator}: {len(world.personas)} personas, seeds {seeds.start}–{seeds[-1]}, {steps} decisions"
    )
    show(title, ("", "reward", "share of the way", *stages), rows)
    ends = (EVERYTHING, RANDOM)
    return {name: share(rewards, oracles)[0] for name, rewards in oracles.items() if name not in ends}


def _row(name: str, rewards: Floats, oracles: Mapping[str, Floats]) -> tuple[str, ...]:
    middle, margin = share(rewards, oracles)
    return name, f"{rewards.mean():.3f}", f"{100 * middle:.1f} ± {100 * margin:.1f} %"


def share(rewards: Floats, oracles: Mapping[str, Floats]) -> tuple[float, float]:
    """Return the share of the way with its margin, from rewards by seed: a ratio of means, linearised."""
    whole = oracles[EVERYTHING] - oracles[RANDOM]
    part = rewards - oracles[RANDOM]
    ratio = part.mean() / whole.mean()
    error = (part - ratio * whole).std(ddof=1) / np.sqrt(len(rewards)) / whole.mean()
    return float(ratio), float(t_quantile(len(rewards) - 1) * error)


if __name__ == "__main__":
    sys.exit(main())
