"""A simulation's results as plain data; the same plan gives the same bytes."""

from math import ceil, inf, sqrt
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.experiment import METRICS, Plan, Results, bin_sizes
from tipbench.recommender.simulation.rollout import Arm
from tipbench.recommender.simulation.simulated_prior import recipe
from tipbench.recommender.simulation.world import World
from tipbench.statistics.drift import t_quantile
from tipbench.statistics.planning import units_needed

SCHEMA = 1


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return everything that the results depend on."""
    return {
        "simulator": plan.world.simulator,
        "world": {"name": plan.world.name, "digest": plan.world.digest},
        "arms": [arm_data(arm, plan.world) for arm in plan.arms],
        "seeds": {"first": plan.seeds.start, "count": len(plan.seeds)},
        "steps": plan.steps,
        "offered": plan.offered,
    }


def arm_data(arm: Arm, world: World | None = None) -> dict[str, Any]:
    """Return what an arm is; with a world, also which prior it is simulated with."""
    found = {
        "name": arm.name,
        "policy": arm.policy.name,
        "feature_version": arm.policy.features.version,
        "parameters": dict(arm.policy.parameters),
        "told": arm.profile,
    }
    if world and arm.simulated_prior:
        found["simulated_prior"] = recipe(arm.simulated_prior, world)
    return found


def outcome_data(results: Results) -> dict[str, Any]:
    plan = results.plan
    return {
        "schema": SCHEMA,
        "plan": plan_data(plan),
        "bins": np.cumsum(bin_sizes(plan)).astype(int).tolist(),
        "overall": {arm.name: _metrics(results, arm.name, None) for arm in plan.arms},
        "personas": [
            {
                "name": persona.name,
                "about": persona.about,
                "control": persona.control,
                "arms": {arm.name: _metrics(results, arm.name, index) for arm in plan.arms},
            }
            for index, persona in enumerate(plan.world.personas)
        ],
    }


def answer_data(results: Results) -> dict[str, Any]:
    """Return which arm earns most over all personas, and how far ahead of each other arm it is, best first.

    Arms serve the same lives, so differences are paired by seed; their 95 % intervals are Student's t. The best is
    certain if each of them is above 0. With one seed there are no intervals.
    """
    by_seed = {arm.name: results.means(arm.name).mean(axis=0) for arm in results.plan.arms}
    best, *others = sorted(by_seed, key=lambda name: -float(by_seed[name].mean()))
    ahead: dict[str, dict[str, Any]] = {}
    for name in others:
        middle, margin = _mean_and_margin((by_seed[best] - by_seed[name])[:, None])
        gap, half = float(middle[0]), float(margin[0])
        ahead[name] = {
            "mean": gap,
            "low": gap - half,
            "high": gap + half,
            "seeds_needed": _seeds_needed(gap, half, len(by_seed[name])),
        }
    return {"best": best, "certain": bool(ahead) and all(one["low"] > 0 for one in ahead.values()), "ahead": ahead}


def _seeds_needed(gap: float, margin: float, seeds: int) -> int | None:
    """Return how many seeds would show this gap, if it stays as it is; None if that can't be told."""
    if seeds < 2:
        return None
    degrees_t = t_quantile(seeds - 1)
    needed = units_needed(gap, margin * sqrt(seeds) / degrees_t, degrees_t)
    return None if needed == inf else max(2, ceil(needed))


def _metrics(results: Results, arm: str, persona: int | None) -> dict[str, Any]:
    """Return each metric as a mean per decision with its margin, as a total per life, and over time.

    `persona` is an index, or None for the mean over all personas.
    """
    found: dict[str, Any] = {}
    for metric in METRICS:
        curves = results.curves(arm, metric)  # by persona, seed and bin
        means = results.means(arm, metric)
        of_seeds = means.mean(axis=0) if persona is None else means[persona]
        over_time = curves.mean(axis=0) if persona is None else curves[persona]
        middle, margin = _mean_and_margin(of_seeds[:, None])
        time_middle, time_margin = _mean_and_margin(over_time)
        found[metric] = {
            "mean": float(middle[0]),
            "margin": float(margin[0]),
            "total": float(middle[0]) * results.plan.steps,
            "over_time": time_middle.tolist(),
            "over_time_margin": time_margin.tolist(),
        }
    return found


def _mean_and_margin(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean over the rows, which are seeds, and the half-width of its 95 % interval."""
    count = len(values)
    middle: Floats = values.mean(axis=0)
    if count < 2:
        return middle, np.full_like(middle, np.nan)
    margin: Floats = t_quantile(count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return middle, margin
