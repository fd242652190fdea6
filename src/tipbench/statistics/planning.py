"""Sample size planning: how many units it takes to tell two rows apart. Plain numbers, without numpy."""

from math import ceil, inf
from statistics import NormalDist

LEVEL = 0.04  # probability of excluding any best row; a point below 5 % to allow for unequal variances
POWER = 0.8
_ROUNDS = 50
_ROUNDING = 1e-9


def separable(rows: int, units: int, level: float = LEVEL) -> bool:
    """Whether any outcome could exclude a row; in the most extreme one, one row is best and one is worst in every unit.

    Of all permutations of the scores within units, a share of (rows × (rows − 1)) ** (1 − units) is as extreme,
    whatever the rows in between do. (They may make it rarer; that is not relied on.)
    """
    return rows > 1 and units > 1 and float(rows * (rows - 1)) ** (1 - units) <= level


def units_to_separate(rows: int, level: float = LEVEL) -> int:
    """Return the smallest number of units with which two or more rows can be told apart."""
    units = 2
    while not separable(rows, units, level):
        units += 1
    return units


def units_needed(gap: float, scatter: float, critical: float, power: float = POWER) -> float:
    """Return the number of units at which a gap exceeds `critical` standard errors with the given power.

    `scatter` is the standard deviation of the difference between units. Assumes that gap and scatter stay as they are
    and that the mean difference of that many units is roughly normal. A gap that was selected as the largest is
    probably smaller in truth, so this tends to be too few. Infinite if the gap is negligible beside the scatter.
    """
    if abs(gap) <= _ROUNDING * scatter or critical == inf:
        return inf
    errors = max(0.0, critical + NormalDist().inv_cdf(power)) * (scatter / abs(gap))
    return errors**2


def more_units(
    gap: float, scatter: float, critical: float, units: int, at_many_units: float, power: float = POWER
) -> float:
    """Return how many more units are needed, at least one; infinite if there is no gap.

    With few units the critical value is larger than with many: it is `critical` at the current number of units and
    approaches `at_many_units`. In between, the excess over the latter is assumed to fall as 1 / units.
    """
    needed = units_needed(gap, scatter, critical, power)
    for _ in range(_ROUNDS if needed < inf else 0):
        at_needed = at_many_units + (critical - at_many_units) * units / max(needed, units)
        needed = units_needed(gap, scatter, at_needed, power)
    return inf if needed == inf else max(1, ceil(needed) - units)
