"""Confidence intervals for the mean of scores on a bounded scale, valid for few, discrete and skewed scores.

Student's t assumes normal scores: with 8 scores near the end of the scale, its 95 % interval covers the true mean in
about half of the cases, and for equal scores it collapses to a point. Gaffke's bound assumes nothing but the scale. For
the upper end, one more score at the top of the scale is added and all scores get random weights that sum to 1 (from the
uniform Dirichlet distribution); the upper end is the 97.5 % quantile of the weighted mean. The lower end is the mirror
image. For binary scores this is the Clopper-Pearson interval; no distribution is known for which the coverage is below
the nominal level (Gaffke 2005; Learned-Miller and Thomas 2020).

The quantile is computed without random numbers: a weighted mean exceeds t exactly when a sum of independent gamma
variables exceeds 0, and the Lugannani-Rice formula gives the tail of that sum. At 2.5 % its error is at most 0.2
percentage points even for one score, and 0.4 for many scores that count as one, on the conservative side in both cases.
"""

from collections.abc import Hashable, Iterable
from math import erfc, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tipbench.statistics.interval import Interval

Floats = NDArray[np.float64]
_BISECTION_STEPS = 40
_LARGEST_TILT = 30.0
_MIN_GROUPS = 4  # with 2 or 3 groups the estimate is 0 too often, and intervals cover only 84 to 94 %
_ROUNDING = 1e-9  # as a share of the scale: averages may be off the scale by this much


def bounded_interval(
    values: ArrayLike, low: float, high: float, groups: Iterable[Hashable] | None = None, level: float = 0.95
) -> Interval:
    """Return a confidence interval for the mean of the population that the scores are drawn from.

    `groups` names the group of each value; values of one group depend on each other, as scenarios of one persona do.
    The dependence is estimated (`intraclass_correlation`), and all values are weighted down accordingly: with full
    dependence and groups of equal size, as if each group were a single value. Groups, and the values within them, are
    assumed to be random samples of the population. Raises ValueError if there are no values, or if a value is not a
    number or lies outside the scale by more than a rounding error.
    """
    scores = np.asarray(values, dtype=np.float64)
    return bounded_intervals(scores[np.newaxis], low, high, groups, level)[0]


def bounded_intervals(
    rows: Floats, low: float, high: float, groups: Iterable[Hashable] | None = None, level: float = 0.95
) -> list[Interval]:
    """Return `bounded_interval` of every row of scores; all rows have the same groups."""
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
        indices = _group_indices(groups, rows.shape[1])
        sizes = np.bincount(indices)
        typical_size = (sizes**2).sum() / rows.shape[1]  # the mean over values of the size of their group
        dependence = [_intraclass_correlation(row, indices, sizes) for row in scaled.round(12)]
        weights /= 1 + np.array(dependence)[:, np.newaxis] * (typical_size - 1)
    tail = (1 - level) / 2
    lowers, uppers = 1 - _upper_ends(1 - scaled, weights, tail), _upper_ends(scaled, weights, tail)
    ends = zip(lowers.tolist(), uppers.tolist(), strict=True)
    return [Interval(low * (1 - lower) + high * lower, low * (1 - upper) + high * upper) for lower, upper in ends]


def intraclass_correlation(values: ArrayLike, groups: Iterable[Hashable]) -> float:
    """Estimate the intraclass correlation: 0 if values of one group are no more alike than others, 1 if they are equal.

    This is the estimate of the one-way analysis of variance, clipped to 0..1. With fewer than four groups, or without
    any variance, it can't be estimated and is 1, the conservative value; if every group has one value, it has no effect
    and is 0.
    """
    scores = np.asarray(values, dtype=np.float64)
    indices = _group_indices(groups, len(scores))
    return _intraclass_correlation(scores, indices, np.bincount(indices))


def _intraclass_correlation(scores: Floats, indices: NDArray[np.intp], sizes: NDArray[np.intp]) -> float:
    count = len(sizes)
    if count == len(scores):
        return 0.0
    if count < _MIN_GROUPS:
        return 1.0
    deviations = scores - scores.mean()
    means = np.bincount(indices, deviations) / sizes
    within = float(((deviations - means[indices]) ** 2).sum()) / (len(scores) - count)
    between = float((sizes * means**2).sum()) / (count - 1)
    typical = (len(scores) - (sizes**2).sum() / len(scores)) / (count - 1)
    total = between + (typical - 1) * within
    if total <= (1e-12 * np.abs(scores).max()) ** 2:  # nothing but rounding errors
        return 1.0
    return float(np.clip((between - within) / total, 0, 1))


def _group_indices(groups: Iterable[Hashable], values: int) -> NDArray[np.intp]:
    """Return the index of each value's group; groups are numbered in order of appearance."""
    index_of: dict[Hashable, int] = {}
    indices = [index_of.setdefault(group, len(index_of)) for group in groups]
    if len(indices) != values:
        raise ValueError(f"{len(indices)} groups for {values} values")
    return np.array(indices, dtype=np.intp)


def _upper_ends(scaled: Floats, weights: Floats, tail: float) -> Floats:
    """For each row of scores on 0..1, return the point that its weighted mean exceeds with probability `tail`."""
    scores = np.column_stack([scaled, np.ones(len(scaled))])
    shapes = np.column_stack([weights, np.ones(len(scaled))])
    low, high = np.zeros(len(scores)), np.full(len(scores), _LARGEST_TILT)
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        above = _tail_probability(middle, scores, shapes) > tail
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ends = _tilted_mean(-np.expm1(-low)[:, np.newaxis], scores, shapes)
    return np.where(scaled.min(axis=1) >= 1, 1.0, ends)


def _tilted_mean(tilt: Floats, scores: Floats, shapes: Floats) -> Floats:
    """Return the mean with more weight on high scores: the plain mean at tilt 0, the top of the scale at tilt 1."""
    weights = shapes / (1 - tilt * scores)
    mean: Floats = (weights * scores).sum(axis=1) / weights.sum(axis=1)
    return mean


def _tail_probability(exponent: Floats, scores: Floats, shapes: Floats) -> Floats:
    """Return the probability that the weighted mean exceeds the tilted mean.

    Every t is the mean under exactly one tilt, and that tilt is the saddle point that the Lugannani-Rice formula needs,
    so no equation has to be solved.
    """
    tilt = -np.expm1(-exponent)[:, np.newaxis]
    point = _tilted_mean(tilt, scores, shapes)[:, np.newaxis]
    rest = 1 - tilt * point
    cumulant = -(shapes * np.log1p(-tilt * scores)).sum(axis=1) + shapes.sum(axis=1) * np.log(rest[:, 0])
    curvature = (shapes * ((scores - point) * rest / (1 - tilt * scores)) ** 2).sum(axis=1)
    w = np.sqrt(np.maximum(-2 * cumulant, 0))
    u = (tilt / rest)[:, 0] * np.sqrt(curvature)
    near = (w < 1e-4) | (
        u < 1e-4
    )  # at the mean the formula is 0/0; the probability is about one half, which is close enough
    w, u = np.where(near, 1.0, w), np.where(near, 1.0, u)
    tail = _normal_tail(w) + np.exp(-(w**2) / 2) / sqrt(2 * pi) * (1 / u - 1 / w)
    return np.where(near, 0.5, tail)


def _normal_tail(w: Floats) -> Floats:
    """Upper tail of the standard normal. scipy.special has it too, at a fifth of the command's start-up time."""
    return np.array([erfc(value / sqrt(2)) / 2 for value in w])


# Inverse propensity weighting: estimate the mean under uniform choice from choices made with known probabilities.
#
# An item chosen with probability p stands for 1/p occasions on which it was a candidate. The mean with these weights,
# divided by their sum, does not depend on how the choices were made, as long as every candidate had a chance and p is
# exact. The price is variance, which the effective sample size shows: with unequal weights, many values count for few.


class WeightedMean(NamedTuple):
    mean: float
    effective: float  # Kish's effective sample size: this many independent, equally weighted values are as precise


def inverse_propensity_mean(values: Floats, propensities: Floats) -> WeightedMean:
    """Self-normalised inverse propensity mean. Raises ValueError for no values or a propensity outside (0, 1]."""
    if not values.size:
        raise ValueError("no values, so no mean")
    if not (propensities.min() > 0 and propensities.max() <= 1 + 1e-9):
        raise ValueError(f"propensities outside (0, 1]: {propensities.min()}..{propensities.max()}")
    weights = propensities.min() / propensities  # at most 1, so nothing overflows
    return WeightedMean(float((weights * values).sum() / weights.sum()), float(weights.sum() ** 2 / (weights**2).sum()))
