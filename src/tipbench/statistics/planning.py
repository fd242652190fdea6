"""Sample size planning: how many units it takes to tell two rows apart, or to prove one the best."""

from math import ceil, inf, sqrt
from statistics import NormalDist

import numpy as np

from tipbench.statistics.paired import units_to_detect
from tipbench.statistics.units import Floats

POWER = 0.8
_DRAWS = 20_000
_ROUNDS = 50
_FEWER_DRAWS, _FEWER_ROUNDS = 1_000, 10  # where each takes long; the result is right to a few percent
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


def units_to_win(differences: Floats, level: float, power: float = POWER, seed: int = 0) -> float:
    """Return the number of units at which a row beats every other one in two-sided paired tests, with the given power.

    `differences` are the row's scores minus those of each other one: other rows × units. Assumes that their means,
    variances and correlations stay as they are and that means are roughly normal. The critical value is Student's, by
    the first term of its expansion. Infinite if the row is not ahead of every other one.
    """
    gaps, units = differences.mean(axis=1), differences.shape[1]
    deviations = differences - gaps[:, np.newaxis]
    scatter = np.sqrt((deviations**2).sum(axis=1) / (units - 1))
    if (gaps <= _ROUNDING * np.maximum(scatter, 1)).any():
        return inf
    noise = np.random.default_rng(seed).standard_normal((_FEWER_DRAWS, units)) @ deviations.T / sqrt(units - 1)
    z = NormalDist().inv_cdf(1 - level / 2)
    fewest = units_to_detect(level)
    needed = float(fewest)
    for _ in range(_FEWER_ROUNDS):
        critical = z + (z**3 + z) / (4 * (needed - 1))
        errors = np.maximum(0.0, critical * scatter + noise) / gaps
        needed = max(fewest, float(np.quantile(errors.max(axis=1), power)) ** 2)
    return ceil(needed)
