"""An interval for the mean of scores on a bounded scale that holds for few, discrete and skewed ones.

Student's t takes scores for normal: with 8 of them near the end of a scale it covers the true mean in about half of the
cases instead of 95 of 100, and from equal scores it makes a point. Gaffke's bound takes nothing but the scale for
granted. For the upper end one more score, at the top of the scale, is added; all get random weights that add up to 1
(Dirichlet, every way of dividing 1 equally likely); the upper end is the 97.5 % quantile of the weighted mean. The
lower end is the mirror image. For yes-or-no scores that is Clopper and Pearson's interval; no distribution is known for
which it covers less than it says (Gaffke 2005; Learned-Miller and Thomas 2020).

The quantile is had without random numbers: a weighted mean lies above t where a sum of independent gamma variables lies
above 0, whose tail Lugannani and Rice's formula gives; at 2.5 % it is right to 0.2 points of a percent even for one
score, and to 0.4 for many that count as one, both times on the careful side.
"""

from collections.abc import Hashable, Iterable
from math import erfc, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_STEPS = 40  # of the bisection
_LARGEST_TILT = 30.0
_ENOUGH_GROUPS = 4  # with 2 or 3 the estimate is 0 too often, and intervals cover 84 to 94 %
_ROUNDING = 1e-9  # of the scale: so little off it is a rounding error, as averages have it


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def bounded_interval(
    values: ArrayLike, low: float, high: float, groups: Iterable[Hashable] | None = None, level: float = 0.95
) -> Interval:
    """The interval for the mean that scores like these have in the long run.

    Values of one group depend on each other, as scenarios of one persona do; `groups` names the group of each. How much
    they depend is estimated (`intraclass_correlation`), and all values weigh accordingly less: fully dependent ones, in
    groups of one size, as if each group were a single value. Groups, and values within them, are taken for random
    samples of what the mean is about. No values are a ValueError, and so is a value that is off the scale by more than
    a rounding error, or no number.
    """
    scores = np.asarray(values, dtype=np.float64)
    return bounded_intervals(scores[np.newaxis], low, high, groups, level)[0]


def bounded_intervals(
    rows: Floats, low: float, high: float, groups: Iterable[Hashable] | None = None, level: float = 0.95
) -> list[Interval]:
    """The same for every row of scores; all rows have the same groups."""
    if not rows.size:
        raise ValueError("no values, so no mean")
    if not low < high:
        raise ValueError(f"not a scale: {low}..{high}")
    scaled = (rows - low) / (high - low)
    if not (scaled.min() >= -_ROUNDING and scaled.max() <= 1 + _ROUNDING):
        raise ValueError(f"values outside {low}..{high}: {rows.min()}..{rows.max()}")
    scaled = scaled.clip(0, 1)
    weights = np.ones_like(scaled)
    if groups is not None:
        names = list(groups)
        sizes = np.bincount(_places(names, rows.shape[1]))
        alike = (sizes**2).sum() / rows.shape[1]  # how large the group of the typical value is
        dependence = [intraclass_correlation(row, names) for row in scaled.round(12)]
        weights /= 1 + np.array(dependence)[:, np.newaxis] * (alike - 1)
    tail = (1 - level) / 2
    lowers, uppers = 1 - _upper_ends(1 - scaled, weights, tail), _upper_ends(scaled, weights, tail)
    ends = zip(lowers.tolist(), uppers.tolist(), strict=True)
    return [Interval(low * (1 - lower) + high * lower, low * (1 - upper) + high * upper) for lower, upper in ends]


def intraclass_correlation(values: ArrayLike, groups: Iterable[Hashable]) -> float:
    """How much more alike two values of one group are than two of different ones: 0 not at all, 1 the same.

    The estimate of the one-way analysis of variance, held within 0 and 1. Where too little can be told, because there
    are fewer than four groups or there is no scatter at all, it is 1, the careful answer; where every group has one
    value, it does not matter and is 0.
    """
    scores = np.asarray(values, dtype=np.float64)
    places = _places(groups, len(scores))
    sizes = np.bincount(places)
    count = len(sizes)
    if count == len(scores):
        return 0.0
    if count < _ENOUGH_GROUPS:
        return 1.0
    off = scores - scores.mean()
    means = np.bincount(places, off) / sizes
    within = float(((off - means[places]) ** 2).sum()) / (len(scores) - count)
    between = float((sizes * means**2).sum()) / (count - 1)
    typical = (len(scores) - (sizes**2).sum() / len(scores)) / (count - 1)
    total = between + (typical - 1) * within
    if total <= (1e-12 * np.abs(scores).max()) ** 2:  # rounding errors
        return 1.0
    return float(np.clip((between - within) / total, 0, 1))


def _places(groups: Iterable[Hashable], values: int) -> NDArray[np.intp]:
    """The number of each value's group."""
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(group, len(numbers)) for group in groups]
    if len(places) != values:
        raise ValueError(f"{len(places)} groups for {values} values")
    return np.array(places, dtype=np.intp)


def _upper_ends(scaled: Floats, weights: Floats, tail: float) -> Floats:
    """For each row of scores on 0..1 the point that its weighted mean exceeds with the probability `tail`."""
    scores = np.column_stack([scaled, np.ones(len(scaled))])
    shapes = np.column_stack([weights, np.ones(len(scaled))])
    low, high = np.zeros(len(scores)), np.full(len(scores), _LARGEST_TILT)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        above = _exceeded(middle, scores, shapes) > tail
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ends = _tilted_mean(-np.expm1(-low)[:, np.newaxis], scores, shapes)
    return np.where(scaled.min(axis=1) >= 1, 1.0, ends)


def _tilted_mean(tilt: Floats, scores: Floats, shapes: Floats) -> Floats:
    """The mean with more weight on high scores: from the plain one at 0 to the top of the scale at 1."""
    weights = shapes / (1 - tilt * scores)
    mean: Floats = (weights * scores).sum(axis=1) / weights.sum(axis=1)
    return mean


def _exceeded(exponent: Floats, scores: Floats, shapes: Floats) -> Floats:
    """How likely the weighted mean lies above the tilted mean.

    Every t is the mean under exactly one tilt, and that tilt is the saddle point which Lugannani and Rice's formula
    needs; so nothing has to be solved for.
    """
    tilt = -np.expm1(-exponent)[:, np.newaxis]
    point = _tilted_mean(tilt, scores, shapes)[:, np.newaxis]
    rest = 1 - tilt * point
    cumulant = -(shapes * np.log1p(-tilt * scores)).sum(axis=1) + shapes.sum(axis=1) * np.log(rest[:, 0])
    curvature = (shapes * ((scores - point) * rest / (1 - tilt * scores)) ** 2).sum(axis=1)
    w = np.sqrt(np.maximum(-2 * cumulant, 0))
    u = (tilt / rest)[:, 0] * np.sqrt(curvature)
    near = (w < 1e-4) | (u < 1e-4)  # at the mean itself the formula is 0/0; half lies above, which is enough here
    w, u = np.where(near, 1.0, w), np.where(near, 1.0, u)
    tail = _beyond(w) + np.exp(-(w**2) / 2) / sqrt(2 * pi) * (1 / u - 1 / w)
    return np.where(near, 0.5, tail)


def _beyond(w: Floats) -> Floats:
    """How likely a normal number is larger. scipy.special has this too, for a fifth of the command's start-up time."""
    return np.array([erfc(one / sqrt(2)) / 2 for one in w])


# Means of what was chosen by chance, as if everything on offer had been chosen alike.
#
# What is chosen with the probability p stands for 1/p occasions on which it was on offer. Weighted so, and divided by
# the sum of the weights, values are free of what the choice depended on, as long as everything on offer had a chance
# and p is exact. The price is variance, which the effective sample size tells: weights that differ make many values
# worth few.


class WeightedMean(NamedTuple):
    mean: float
    effective: float  # Kish's: so many values of equal weight would tell as much, were they independent


def inverse_propensity_mean(values: Floats, propensities: Floats) -> WeightedMean:
    """The self-normalised one. No values, or a propensity outside (0, 1], are a ValueError."""
    if not values.size:
        raise ValueError("no values, so no mean")
    if not (propensities.min() > 0 and propensities.max() <= 1 + 1e-9):
        raise ValueError(f"propensities outside (0, 1]: {propensities.min()}..{propensities.max()}")
    weights = propensities.min() / propensities  # at most 1: nothing can overflow
    return WeightedMean(float((weights * values).sum() / weights.sum()), float(weights.sum() ** 2 / (weights**2).sum()))
