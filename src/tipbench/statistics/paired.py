"""Tests on paired differences: one-sided t tests for "is one better?", and a permutation test for changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.statistics.drift import t_quantile_at
from tipbench.statistics.units import (
    DRAWS,
    Floats,
    NullDistribution,
    Paired,
    flipped_signs,
    max_abs_t,
    means_and_errors,
    with_error_floor,
)

FEWEST = 10  # differences; with fewer, the expansion of the t quantiles is not exact enough
LEVEL = 0.05  # probability of calling any of several unchanged pairs changed


class Difference(NamedTuple):
    """The mean of paired differences and its standard error."""

    mean: float
    error: float  # standard error of the mean
    degrees: int

    def lower_bound(self, level: float) -> float:
        """Return the lower confidence bound of the true mean; it is the mean itself if all differences are equal."""
        return self.mean - t_quantile_at(level, self.degrees) * self.error

    @property
    def t(self) -> float:
        """The t statistic; 0 if all differences are 0."""
        if self.error == 0:
            return 0.0 if self.mean == 0 else float("inf") if self.mean > 0 else float("-inf")
        return self.mean / self.error


def difference(values: Sequence[float] | NDArray[np.floating]) -> Difference:
    """Return the mean difference with its standard error; raise ValueError for fewer than `FEWEST` values."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) < FEWEST:
        raise ValueError(f"{len(array)} differences, but at least {FEWEST} are needed")
    return Difference(float(array.mean()), float(array.std(ddof=1) / sqrt(len(array))), len(array) - 1)


def holm_wins(differences: Sequence[Difference], alpha: float) -> list[bool]:
    """Return which means are above 0, with family-wise error rate at most `alpha` (Holm's step-down procedure)."""
    order = sorted(range(len(differences)), key=lambda index: -differences[index].t)
    wins = [False] * len(differences)
    for rank, index in enumerate(order):
        needed = t_quantile_at(1 - alpha / (len(differences) - rank), differences[index].degrees)
        if not differences[index].t > needed:
            break
        wins[index] = True
    return wins


# Permutation test for paired differences, such as the same row in two experiments: which of them are beyond chance.
#
# Assumptions: where nothing changed, a difference could equally have had the other sign (both sides are exchangeable),
# and units are independent. The test is then exact for any distribution, and covers all differences simultaneously. The
# interval assumes that the spread under the null also holds around the observed difference; with too few units to
# detect anything (`detectable`) it is infinite.


@dataclass(frozen=True)
class Changes:
    """For each pair the mean difference, an interval that holds for all pairs simultaneously, and the p-value."""

    means: Floats
    lows: Floats
    highs: Floats
    p: Floats


def detectable(units: int, level: float = LEVEL) -> bool:
    """Whether any outcome could be significant: of the 2 ** units sign patterns, two are the most extreme."""
    return 2.0 ** (1 - units) <= level


def units_to_detect(level: float = LEVEL) -> int:
    """Return the smallest number of units with which a change can be told from chance."""
    units = 1
    while not detectable(units, level):
        units += 1
    return units


def changes(differences: Paired, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Changes:
    """Test all differences at once: flip the signs of units at random and compare with the largest resulting mean."""
    data = differences.coarser()
    null = NullDistribution(data, flipped_signs, max_abs_t, draws, seed)
    means, errors = means_and_errors(data.scores, data.weights)
    margin = (null.critical(level) if detectable(data.units, level) else np.inf) * with_error_floor(
        means, errors, data.units
    )
    return Changes(means, means - margin, means + margin, null.p(np.abs(means) / errors))
