"""How many units it takes to tell two rows apart."""

from math import ceil, inf, sqrt
from statistics import NormalDist

import numpy as np

POWER = 0.8
_DRAWS = 20_000
_ROUNDS = 50
_ROUNDING = 1e-9


def units_needed(gap: float, scatter: float, critical: float, power: float = POWER) -> float:
    """The number of units at which a gap would come out beyond `critical` standard errors, with the given power.

    `scatter` is the standard deviation of the difference from unit to unit. Assumed: gap and scatter stay as they are,
    and the mean difference of that many units is about normal. A gap that was picked for being the largest tends to be
    smaller in truth, so this is rather too few. Infinite for no gap, or one that is nothing beside the scatter.
    """
    if abs(gap) <= _ROUNDING * scatter or critical == inf:
        return inf
    errors = max(0.0, critical + NormalDist().inv_cdf(power)) * (scatter / abs(gap))
    return errors**2


def more_units(
    gap: float, scatter: float, critical: float, units: int, at_many_units: float, power: float = POWER
) -> float:
    """How many units are missing, at least one; infinite for no gap.

    Few units ask for more standard errors than many do: `critical` with the units at hand, `at_many_units` in the end.
    In between, what is above the latter is taken to go down as 1 / units.
    """
    needed = units_needed(gap, scatter, critical, power)
    for _ in range(_ROUNDS if needed < inf else 0):
        at_needed = at_many_units + (critical - at_many_units) * units / max(needed, units)
        needed = units_needed(gap, scatter, at_needed, power)
    return inf if needed == inf else max(1, ceil(needed) - units)


def critical_at_many_units(rows: int, level: float, seed: int = 0) -> float:
    """How many standard errors apart two of so many equal rows come to lie in no more than `level` of all cases.

    With so many units that means are normal and their scatter is known: the quantile of the range of normal numbers, in
    standard errors of a difference (Tukey's studentised range, over the root of 2).
    """
    drawn = np.random.default_rng(seed).standard_normal((_DRAWS, rows))
    return float(np.quantile(np.ptp(drawn, axis=1), 1 - level)) / sqrt(2)
