"""A simulation's results as plain data; the same plan gives the same bytes."""

from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.experiment import METRICS, Plan, Results, bin_sizes
from tipbench.recommender.simulation.rollout import Arm
from tipbench.recommender.simulation.user_model import SIMULATOR
from tipbench.statistics.drift import t_quantile

SCHEMA = 1


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return everything that the results depend on."""
    return {
        "simulator": SIMULATOR,
        "world": {"name": plan.world.name, "digest": plan.world.digest},
        "arms": [arm_data(arm) for arm in plan.arms],
        "seeds": {"first": plan.seeds.start, "count": len(plan.seeds)},
        "steps": plan.steps,
        "offered": plan.offered,
    }


def arm_data(arm: Arm) -> dict[str, Any]:
    return {
        "name": arm.name,
        "policy": arm.policy.name,
        "feature_version": arm.policy.features.version,
        "parameters": dict(arm.policy.parameters),
        "told": arm.profile,
    }


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
