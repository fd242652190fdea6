"""What a model does whatever the prompt, what a prompt does whatever the model, and what they do only together.

Assumed, as for the top group: without an effect, scores are exchangeable within a unit between the levels in question,
and units are independent. Intervals hold for all levels of a factor together; one unit tells nothing, and they have no
ends then.
"""

from dataclasses import dataclass

import numpy as np

from tipbench.statistics.units import (
    DRAWS,
    Chance,
    Floats,
    Paired,
    Rearrange,
    beyond_rounding,
    largest_size,
    means_and_errors,
    never_sure,
    shuffled_rows,
)

LEVEL = 0.05


@dataclass(frozen=True)
class Effects:
    """How far each level lies from the mean of all, and how easily chance brings about the largest such distance."""

    sizes: Floats
    lows: Floats
    highs: Floats
    p: float


def main_effects(levels: Paired, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Effects:
    """Of one factor; `levels` holds the mean over the other factor, in each unit."""
    centred = beyond_rounding(levels.scores - levels.scores.mean(axis=0), levels.scores)
    return _effects(Paired(centred, levels.weights).coarser(), shuffled_rows, level, draws, seed)


def interaction(grid: Floats, weights: Floats, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Effects:
    """Of two factors; `grid` is first factor × second × units. What is left beyond both main effects, flattened.

    Shuffles the levels of both factors within units.
    """
    first, second, units = grid.shape
    left = grid - grid.mean(axis=0, keepdims=True) - grid.mean(axis=1, keepdims=True)
    left = beyond_rounding(left + grid.mean(axis=(0, 1), keepdims=True), grid)

    def shuffled(data: Paired, times: int, random: np.random.Generator) -> Floats:
        by_unit = np.broadcast_to(data.scores.T.reshape(data.units, first, second), (times, data.units, first, second))
        order = random.permuted(np.broadcast_to(np.arange(first), (times, data.units, first)), axis=2)
        by_unit = np.take_along_axis(by_unit, order[..., np.newaxis], axis=2)
        order = random.permuted(np.broadcast_to(np.arange(second), (times, data.units, second)), axis=2)
        by_unit = np.take_along_axis(by_unit, order[:, :, np.newaxis, :], axis=3)
        return by_unit.reshape(times, data.units, first * second).transpose(0, 2, 1)

    return _effects(Paired(left.reshape(first * second, units), weights).coarser(), shuffled, level, draws, seed)


def _effects(data: Paired, rearrange: Rearrange, level: float, draws: int, seed: int) -> Effects:
    chance = Chance(data, rearrange, largest_size, draws, seed)
    sizes, errors = means_and_errors(data.scores, data.weights)
    margin = (chance.critical(level) if data.units > 1 else np.inf) * never_sure(sizes, errors, data.units)
    largest = np.array([(np.abs(sizes) / errors).max()])
    return Effects(sizes, sizes - margin, sizes + margin, float(chance.p(largest)[0]))
