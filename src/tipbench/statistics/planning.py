"""Sample size planning: how many units it takes to tell two rows apart."""

from math import ceil, inf, sqrt
from statistics import NormalDist

import numpy as np

POWER = 0.8
_DRAWS = 20_000
_ROUNDS = 50
_ROUNDING = 1e-9


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


def critical_at_many_units(rows: int, level: float, seed: int = 0) -> float:
    """Return the critical distance, in standard errors, of the best and the worst of `rows` equal rows.

    It is exceeded by chance in at most `level` of all cases, given so many units that means are normal and their
    variance is known: the quantile of the range of normal variables, in standard errors of a difference (Tukey's
    studentised range divided by √2).
    """
    drawn = np.random.default_rng(seed).standard_normal((_DRAWS, rows))
    return float(np.quantile(np.ptp(drawn, axis=1), 1 - level)) / sqrt(2)
