"""Differences of pairs, such as the same row in two experiments: which of them are more than chance.

Assumed: where nothing changed, a difference could as well have had the other sign (both sides are exchangeable), and
units are independent. The test is exact then, for any distribution; all differences are looked at together. The
interval takes the spread that chance gives to hold around the observed difference too; with too few units to tell
anything (`tellable`) it has no ends.
"""

from dataclasses import dataclass

import numpy as np

from tipbench.statistics.chance import DRAWS, Chance, flipped_signs
from tipbench.statistics.units import Floats, Paired, largest_size, means_and_errors, never_sure

LEVEL = 0.05  # of calling any of several unchanged pairs changed


@dataclass(frozen=True)
class Changes:
    """For each pair the mean difference, an interval that holds for all together, and how easily chance does it."""

    means: Floats
    lows: Floats
    highs: Floats
    p: Floats


def tellable(units: int, level: float = LEVEL) -> bool:
    """Whether any outcome could be more than chance: of 2 to the power of u signs, two outcomes are the clearest."""
    return 2.0 ** (1 - units) <= level


def units_to_tell(level: float = LEVEL) -> int:
    """The fewest units with which a change can be told from chance."""
    units = 1
    while not tellable(units, level):
        units += 1
    return units


def changes(differences: Paired, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Changes:
    """Flips the signs of the units' differences at random, and looks at the largest mean that chance gives."""
    data = differences.coarser()
    chance = Chance(data, flipped_signs, largest_size, draws, seed)
    means, errors = means_and_errors(data.scores, data.weights)
    margin = (chance.critical(level) if tellable(data.units, level) else np.inf) * never_sure(means, errors, data.units)
    return Changes(means, means - margin, means + margin, chance.p(np.abs(means) / errors))
