"""Main effects of models and of prompts, and their interaction.

Assumptions, as for the top group: without an effect, scores are exchangeable within a unit between the levels in
question, and units are independent. Intervals hold simultaneously for all levels of a factor; a single unit says
nothing, so the intervals are infinite then.
"""

from dataclasses import dataclass

import numpy as np

from tipbench.statistics.units import (
    DRAWS,
    Floats,
    NullDistribution,
    Paired,
    Rearrange,
    max_abs_t,
    means_and_errors,
    shuffled_rows,
    with_error_floor,
    zero_rounding_errors,
)

LEVEL = 0.05


@dataclass(frozen=True)
class Effects:
    """Each level's deviation from the overall mean, with an interval, and the p-value of the largest deviation."""

    sizes: Floats
    lows: Floats
    highs: Floats
    p: float


def main_effects(levels: Paired, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Effects:
    """Return the main effects of one factor; `levels` holds the mean over the other factor, in each unit."""
    centred = zero_rounding_errors(levels.scores - levels.scores.mean(axis=0), levels.scores)
    return _effects(Paired(centred, levels.weights).coarser(), shuffled_rows, level, draws, seed)


def interaction(grid: Floats, weights: Floats, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Effects:
    """Return the interaction of two factors: what remains after both main effects, flattened.

    `grid` is first factor × second factor × units. The test shuffles the levels of both factors within units.
    """
    first, second, units = grid.shape
    residual = grid - grid.mean(axis=0, keepdims=True) - grid.mean(axis=1, keepdims=True)
    residual = zero_rounding_errors(residual + grid.mean(axis=(0, 1), keepdims=True), grid)

    def shuffled(data: Paired, times: int, random: np.random.Generator) -> Floats:
        by_unit = np.broadcast_to(data.scores.T.reshape(data.units, first, second), (times, data.units, first, second))
        order = random.permuted(np.broadcast_to(np.arange(first), (times, data.units, first)), axis=2)
        by_unit = np.take_along_axis(by_unit, order[..., np.newaxis], axis=2)
        order = random.permuted(np.broadcast_to(np.arange(second), (times, data.units, second)), axis=2)
        by_unit = np.take_along_axis(by_unit, order[:, :, np.newaxis, :], axis=3)
        return by_unit.reshape(times, data.units, first * second).transpose(0, 2, 1)

    return _effects(Paired(residual.reshape(first * second, units), weights).coarser(), shuffled, level, draws, seed)


def _effects(data: Paired, rearrange: Rearrange, level: float, draws: int, seed: int) -> Effects:
    null = NullDistribution(data, rearrange, max_abs_t, draws, seed)
    sizes, errors = means_and_errors(data.scores, data.weights)
    margin = (null.critical(level) if data.units > 1 else np.inf) * with_error_floor(sizes, errors, data.units)
    largest = np.array([(np.abs(sizes) / errors).max()])
    return Effects(sizes, sizes - margin, sizes + margin, float(null.p(largest)[0]))
