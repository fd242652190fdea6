"""Is one better than another, by differences of pairs? One-sided, by Student's t."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.statistics.drift import t_quantile_at
from tipbench.statistics.units import (
    DRAWS,
    Chance,
    Floats,
    Paired,
    flipped_signs,
    largest_size,
    means_and_errors,
    never_sure,
)

FEWEST = 10  # differences; below, the expansion of t's quantiles is not exact enough
LEVEL = 0.05  # of calling any of several unchanged pairs changed


class Difference(NamedTuple):
    """The mean of paired differences, and how sure it is."""

    mean: float
    error: float  # its standard error
    degrees: int

    def lower_bound(self, level: float) -> float:
        """Above which the true mean is, with this confidence. Where all differences are the same, there is no doubt."""
        return self.mean - t_quantile_at(level, self.degrees) * self.error

    @property
    def t(self) -> float:
        """0 where nothing differs at all."""
        if self.error == 0:
            return 0.0 if self.mean == 0 else float("inf") if self.mean > 0 else float("-inf")
        return self.mean / self.error


def difference(values: Sequence[float] | NDArray[np.floating]) -> Difference:
    found = np.asarray(values, dtype=np.float64)
    if len(found) < FEWEST:
        raise ValueError(f"{len(found)} differences, and {FEWEST} are the fewest that this can say something about")
    return Difference(float(found.mean()), float(found.std(ddof=1) / sqrt(len(found))), len(found) - 1)


def holm_wins(differences: Sequence[Difference], alpha: float) -> list[bool]:
    """Which of the means are above 0, so that the chance of even one false claim is at most α (Holm's step-down)."""
    order = sorted(range(len(differences)), key=lambda place: -differences[place].t)
    wins = [False] * len(differences)
    for rank, place in enumerate(order):
        needed = t_quantile_at(1 - alpha / (len(differences) - rank), differences[place].degrees)
        if not differences[place].t > needed:
            break
        wins[place] = True
    return wins


# Differences of pairs, such as the same row in two experiments: which of them are more than chance.
#
# Assumed: where nothing changed, a difference could as well have had the other sign (both sides are exchangeable),
# and units are independent. The test is exact then, for any distribution; all differences are looked at together. The
# interval takes the spread that chance gives to hold around the observed difference too; with too few units to tell
# anything (`tellable`) it has no ends.


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
