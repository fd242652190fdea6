"""Which rows may be the best: those that chance does not shut out, with all rows looked at together.

Picking the highest mean and testing it against the rest shuts out a row in two of three grids of twelve equal ones,
with Holm's correction still in one of seven, because the highest of twelve means is high by chance. Here the question
is how far apart the best and the worst of so many *equal* rows come to lie by chance.

Assumed: rows that are equally good are exchangeable within a unit, so that their scores could as well have been each
other's; units are independent. What all rows share (a hard persona) plays no part. Exact then, for any distribution and
any number of units; roughly so where equal rows scatter differently, better with more units.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tipbench.statistics.units import DRAWS, Chance, Floats, Paired, beyond_rounding, borrowing, shuffled_rows

LEVEL = 0.04  # of shutting out any of the best rows; a point below 5 %, for rows that scatter differently

_MANY_ROWS = 40  # the work grows with the square of the rows; of more, fewer shuffles do: the test stays exact
_FEWEST_DRAWS = 499
_DRAWS = 10_000
_ROUNDING = 1e-9  # of the largest sum


@dataclass(frozen=True)
class TopGroup:
    """Which rows may be the best, and how easily chance explains that a row lies so far behind."""

    members: NDArray[np.bool_]
    p: Floats  # at most the level: shut out
    critical: float  # how many standard errors apart two of all rows must lie


def separable(rows: int, units: int, level: float = LEVEL) -> bool:
    """Whether any outcome could shut out a row: in the clearest one, one row is best and one worst in every unit.

    Of all ways to deal the scores out to the rows, a share of (rows × (rows − 1)) to the power of 1 − units is as
    clear, whatever the rows in between do. (They may happen to make it rarer; that is not counted on.)
    """
    return rows > 1 and units > 1 and float(rows * (rows - 1)) ** (1 - units) <= level


def units_to_separate(rows: int, level: float = LEVEL) -> int:
    """The fewest units with which two or more rows can be told apart."""
    units = 2
    while not separable(rows, units, level):
        units += 1
    return units


def top_group(paired: Paired, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> TopGroup:
    """Shuffles the rows' scores within units, and shuts out what lies further behind than chance brings about.

    The statistic is the largest difference of two rows in standard errors. When rows are shut out, the rest is looked
    at again by itself (a step-down procedure), because bad rows make chance look larger than it is. And bad rows that
    hardly vary make the others look surer than they are; so of the rows that lie too far behind the worse half goes
    first, and the better half has another chance, as long as the rows that are left can well be told apart. No row is
    shut out while one with a lower mean stays, however sure it looks: who reads the result could not make sense of it.
    """
    data = paired.coarser()
    if data.rows > _MANY_ROWS:
        draws = max(_FEWEST_DRAWS, draws * _MANY_ROWS**2 // data.rows**2)
    data = Paired(beyond_rounding(data.scores - data.scores.mean(axis=0), data.scores), data.weights)
    p = np.ones(data.rows)
    left = np.arange(data.rows)
    critical, before = np.inf, 0.0
    while len(left) > 1 and data.units > 1:
        part = data.only(left)
        chance = Chance(part, shuffled_rows, _furthest_behind, draws, seed)
        critical = chance.critical(level) if len(left) == data.rows else critical
        behind = _behind(part.scores[np.newaxis], part.weights)[0]
        p_now = chance.p(behind)
        p[left] = np.maximum(p_now, before)
        shut_out = p_now <= level
        if not shut_out.any():
            break
        worse_half = shut_out & (behind >= np.median(behind[shut_out]))
        if _well_separable(int((~worse_half).sum()), data.units, level):
            shut_out = worse_half
        before = max(before, float(p_now[shut_out].max()))
        left = left[~shut_out]
    by_mean = np.lexsort((-p, data.means))
    p[by_mean] = np.maximum.accumulate(p[by_mean])
    return TopGroup(p > level, p, critical)


def _well_separable(rows: int, units: int, level: float) -> bool:
    """Whether one row could easily be shown to be the best of all: as the clearest of rows ** (units − 1) outcomes."""
    return float(rows) ** (1 - units) <= level / 4


def _furthest_behind(scores: Floats, weights: Floats) -> Floats:
    furthest: Floats = _behind(scores, weights).max(axis=1)
    return furthest


def _behind(scores: Floats, weights: Floats) -> Floats:
    """By how many standard errors each row lies behind the row that it lies behind most; one line an arrangement."""
    rows, units = scores.shape[1:]
    means = scores @ weights
    off = (scores - means[:, :, np.newaxis]) * (weights * units)
    shared = off @ off.transpose(0, 2, 1) / ((units - 1) * units)
    own = np.einsum("bii->bi", shared)
    variances = own[:, :, np.newaxis] + own[:, np.newaxis, :] - 2 * shared
    usual = variances.sum(axis=(1, 2), keepdims=True) / (rows * (rows - 1))
    # At least their own scatter: rows that never vary must not make two that do look surer than they are.
    errors = np.sqrt(np.maximum(borrowing(variances, usual, units, float(np.abs(scores).max())), variances))
    behind: Floats = ((means[:, np.newaxis, :] - means[:, :, np.newaxis]) / errors).max(axis=2)
    return behind


# How likely each row is the best one.


def probability_best(paired: Paired, draws: int = _DRAWS, seed: int = 0) -> Floats:
    """For each row the probability that its mean over all units there could be is the highest; they add up to 1.

    The units at hand get random weights (a Bayesian bootstrap), so that what they say counts only as far as they agree.
    One more unit stands for what nobody has seen: one of those at hand, with the rows' scores dealt out at random.
    Without it, the better of two rows that is ahead in all of four units would be the best for certain; with it, with
    97 %, 1 less half the p of a one-sided sign test. Units are taken for independent and for a random sample. Rows that
    share the highest mean share the probability.
    """
    random = np.random.default_rng(seed)
    weights = random.standard_exponential((draws, paired.units)) * (paired.weights * paired.units)
    unseen = random.permuted(paired.scores.T[random.integers(paired.units, size=draws)], axis=1)
    sums = weights @ paired.scores.T + random.standard_exponential((draws, 1)) * unseen
    best = sums >= sums.max(axis=1, keepdims=True) - _ROUNDING * np.abs(sums).max(axis=1, keepdims=True)
    shares: Floats = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
