"""The top group: the rows that may be the best, by a test that considers all rows together.

Testing the row with the highest mean against the rest excludes some row in two of three grids of twelve equal rows, and
with Holm's correction still in one of seven, because the highest of twelve means is high by chance. So this test asks
how far apart the best and the worst of that many *equal* rows lie by chance.

Assumptions: equally good rows are exchangeable within a unit, and units are independent. What all rows share (such as a
hard persona) has no effect. The test is then exact for any distribution and any number of units; if equal rows differ
in variance it is approximate, and improves with more units.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tipbench.statistics.planning import LEVEL
from tipbench.statistics.units import (
    DRAWS,
    Floats,
    NullDistribution,
    Paired,
    shrunken_variances,
    shuffled_rows,
    zero_rounding_errors,
)

_MANY_ROWS = 40  # the cost is quadratic in the rows; beyond this, fewer shuffles are used: the test stays exact
_MIN_DRAWS = 499
_DRAWS = 10_000
_NORMAL_DRAWS = 20_000  # of normal variables
_AT_ONCE = 500  # draws; all of them would take as much memory as the experiment has units
_ROUNDING = 1e-9  # relative to the largest sum


@dataclass(frozen=True)
class TopGroup:
    """The rows that may be the best, and the p-value of each row being this far behind by chance."""

    members: NDArray[np.bool_]
    p: Floats  # excluded if at most the level
    critical: float  # critical distance of two rows, in standard errors, with all rows in the test


def top_group(paired: Paired, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> TopGroup:
    """Find the top group: shuffle the rows' scores within units, and exclude rows further behind than chance explains.

    The statistic is the largest difference of two rows in standard errors. After rows are excluded, the remaining rows
    are tested again on their own (a step-down procedure), because bad rows inflate the null distribution. Bad rows that
    hardly vary also make the errors of the others look too small; so of the rows that are too far behind only the worse
    half is excluded first, and the better half is tested again, as long as the remaining rows are well separable. No
    row is excluded while one with a lower mean stays, whatever its own p-value: readers could not make sense of that.
    """
    data = paired.coarser()
    if data.rows > _MANY_ROWS:
        draws = max(_MIN_DRAWS, draws * _MANY_ROWS**2 // data.rows**2)
    data = Paired(zero_rounding_errors(data.scores - data.scores.mean(axis=0), data.scores), data.weights)
    p = np.ones(data.rows)
    remaining = np.arange(data.rows)
    critical, p_before = np.inf, 0.0
    while len(remaining) > 1 and data.units > 1:
        part = data.only(remaining)
        null = NullDistribution(part, shuffled_rows, _furthest_behind, draws, seed)
        critical = null.critical(level) if len(remaining) == data.rows else critical
        behind = _behind(part.scores[np.newaxis], part.weights)[0]
        p_now = null.p(behind)
        p[remaining] = np.maximum(p_now, p_before)
        excluded = p_now <= level
        if not excluded.any():
            break
        worse_half = excluded & (behind >= np.median(behind[excluded]))
        if _well_separable(int((~worse_half).sum()), data.units, level):
            excluded = worse_half
        p_before = max(p_before, float(p_now[excluded].max()))
        remaining = remaining[~excluded]
    by_mean = np.lexsort((-p, data.means))
    p[by_mean] = np.maximum.accumulate(p[by_mean])
    return TopGroup(p > level, p, critical)


def _well_separable(rows: int, units: int, level: float) -> bool:
    """Whether a single best row could easily be shown, as the clearest of rows ** (units − 1) outcomes."""
    return float(rows) ** (1 - units) <= level / 4


def _furthest_behind(scores: Floats, weights: Floats) -> Floats:
    furthest: Floats = _behind(scores, weights).max(axis=1)
    return furthest


def _behind(scores: Floats, weights: Floats) -> Floats:
    """For each arrangement and row, return the largest distance behind another row, in standard errors."""
    rows, units = scores.shape[1:]
    means = scores @ weights
    deviations = (scores - means[:, :, np.newaxis]) * (weights * units)
    covariances = deviations @ deviations.transpose(0, 2, 1) / ((units - 1) * units)
    own = np.einsum("bii->bi", covariances)
    variances = own[:, :, np.newaxis] + own[:, np.newaxis, :] - 2 * covariances
    usual = variances.sum(axis=(1, 2), keepdims=True) / (rows * (rows - 1))
    # At least their own variance: rows that never vary must not make two rows that do look more certain than they are.
    errors = np.sqrt(np.maximum(shrunken_variances(variances, usual, units, float(np.abs(scores).max())), variances))
    behind: Floats = ((means[:, np.newaxis, :] - means[:, :, np.newaxis]) / errors).max(axis=2)
    return behind


def critical_at_many_units(rows: int, level: float, seed: int = 0) -> float:
    """Return the critical distance, in standard errors, of the best and the worst of `rows` equal rows.

    It is exceeded by chance in at most `level` of all cases, given so many units that means are normal and their
    variance is known: the quantile of the range of normal variables, in standard errors of a difference (Tukey's
    studentised range divided by √2).
    """
    drawn = np.random.default_rng(seed).standard_normal((_NORMAL_DRAWS, rows))
    return float(np.quantile(np.ptp(drawn, axis=1), 1 - level)) / sqrt(2)


# How likely each row is the best one, and what picking another one costs.


def draw_means(paired: Paired, draws: int = _DRAWS, seed: int = 0) -> Floats:
    """Return what the rows' means over the population of units may be: draws (down) of all rows (across).

    The observed units get random weights (a Bayesian bootstrap), so the draws scatter as far as the units disagree. One
    more unit stands for unseen ones: a random observed unit with its scores permuted between the rows. Without it, a
    row that is ahead of another in all of four units would be the best for certain; with it, the probability is 97 %,
    which is 1 minus half the p-value of a one-sided sign test. Units are assumed to be an independent random sample.
    """
    random = np.random.default_rng(seed)
    sums, total = np.empty((draws, paired.rows)), np.empty((draws, 1))
    for start in range(0, draws, _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, draws))
        weights = random.standard_exponential((part.stop - start, paired.units)) * (paired.weights * paired.units)
        sums[part], total[part] = weights @ paired.scores.T, weights.sum(axis=1, keepdims=True)
    unseen = random.permuted(paired.scores.T[random.integers(paired.units, size=draws)], axis=1)
    its_weight = random.standard_exponential((draws, 1))
    means: Floats = (sums + its_weight * unseen) / (total + its_weight)
    return means


def probability_best(means: Floats) -> Floats:
    """Return the probability of each row having the highest mean, by `draw_means`; they sum to 1.

    Rows that share the highest mean share the probability.
    """
    best = means >= means.max(axis=1, keepdims=True) - _ROUNDING * np.abs(means).max(axis=1, keepdims=True)
    shares: Floats = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def expected_loss(means: Floats, row: int) -> float:
    """Return by how much the row's mean falls short of the highest one on average, by `draw_means`.

    `benchmarks/leaderboard` holds it against the truth: for a row that was picked for its high mean it is about right
    where scores scatter evenly, and too low where most are at an end of the scale, or where few units were seen and one
    row is far better than the others.
    """
    return float((means.max(axis=1) - means[:, row]).mean())
