"""A judge's deviation from reference scores on one criterion, and from its own earlier scores.

Items are assumed to be independent. Intervals are two-sided 95 % intervals and never collapse to a point: a few items
that all agree prove nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, copysign, inf, isfinite, nan, sqrt, tanh
from statistics import NormalDist

from tipbench.statistics.agreement import PairSums, score_pairs

_FEW_DEGREES = {1: 12.706205, 2: 4.302653, 3: 3.182446}


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t: a table up to 3 degrees of freedom, then the Cornish-Fisher expansion.

    The error is below 0.001 from 4 degrees on, below 0.00001 from 10 on; at 3, the expansion would be 0.004 too small.
    """
    return _FEW_DEGREES[degrees] if degrees in _FEW_DEGREES else _expansion(0.975, degrees)


def t_quantile_at(probability: float, degrees: int) -> float:
    """Any quantile of Student's t, for 9 or more degrees of freedom; raise ValueError for fewer.

    Up to 99.95 % the error is below 0.002, and below 0.00004 from 19 degrees on.
    """
    if degrees < 9:
        raise ValueError(f"{degrees} degrees of freedom are too few for the expansion")
    return _expansion(probability, degrees)


def _expansion(probability: float, degrees: int) -> float:
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / float(degrees) ** power for power, term in enumerate(terms))


def mean_and_margin(values: Sequence[int]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95 % t interval; raise ValueError for no values.

    Equal integers would give a margin of 0, a certainty that few items can't justify. So the variance is at least 1/n,
    that of values of which one in n is off by one, and the standard error at least 1/n. A single value gets one degree
    of freedom, hence a margin of 12.7, which says that nothing is known.
    """
    n = len(values)
    if not n:
        raise ValueError("no values, so no mean")
    total = sum(values)
    scatter = n * sum(value * value for value in values) - total * total
    variance = max(scatter / (n * (n - 1)), 1 / n) if n > 1 else 1.0
    return total / n, t_quantile(max(n - 1, 1)) * sqrt(variance / n)


@dataclass(frozen=True)
class Offset:
    """The mean of given − reference: above 0 the judge is too lenient, below 0 too strict."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Kappa:
    """Quadratically weighted kappa; where it is undefined, the value is None and the interval is −1..1."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Consistency:
    """For items scored twice: the mean absolute difference, its upper bound, and the share with equal scores."""

    mean_difference: float
    same: float
    n: int
    high: float


def offset(given: Sequence[int], reference: Sequence[int]) -> Offset:
    """Return the offset with its t interval, which may exceed the scale; raise ValueError for no items."""
    differences = [score - expected for score, expected in zip(given, reference, strict=True)]
    mean, margin = mean_and_margin(differences)
    return Offset(mean, mean - margin, mean + margin, len(differences))


def consistency(pairs: Sequence[tuple[int, int]]) -> Consistency:
    """Return the consistency; `high` is the upper end of the t interval. Raises ValueError for no pairs."""
    differences = [abs(first - second) for first, second in pairs]
    mean, margin = mean_and_margin(differences)
    return Consistency(mean, differences.count(0) / len(differences), len(differences), mean + margin)


def kappa(given: Sequence[int], reference: Sequence[int], low: int, high: int) -> Kappa:
    """`weighted_kappa` with a jackknife interval over the items.

    The jackknife says nothing if fewer than two items differ, or if one side gave the same score to every item. In that
    case two pseudo-items near the mean score are added for the interval, one scored a step too high, one a step too
    low. If that does not help either, and for fewer than three items, the interval is −1..1.
    """
    counts = score_pairs(given, reference, low, high)
    sums = PairSums.of(counts)
    value = sums.kappa
    if value is None or sums.n < 3:
        return Kappa(value, -1.0, 1.0)
    middle = min((sums.first + sums.second) // (2 * sums.n), high - 1)
    pseudo_items = Counter([(middle, middle + 1), (middle + 1, middle)])
    bounds = _jackknife(counts, sums.n - 1) or _jackknife(counts + pseudo_items, sums.n - 1) or (-1.0, 1.0)
    return Kappa(value, min(bounds[0], value), max(bounds[1], value))


def _jackknife(counts: Counter[tuple[int, int]], degrees: int) -> tuple[float, float] | None:
    """Return the interval computed on Fisher's z scale, which keeps it within −1..1 and asymmetric near the ends.

    None if it has no width or can't be represented on that scale.
    """
    sums = PairSums.of(counts)
    centre = _fisher(sums.kappa)
    left_out = {pair: _fisher(sums.without(pair).kappa) for pair in counts}
    if not all(map(isfinite, [centre, *left_out.values()])) or len(set(left_out.values())) == 1:
        return None
    mean = sum(times * left_out[pair] for pair, times in counts.items()) / sums.n
    scatter = sum(times * (left_out[pair] - mean) ** 2 for pair, times in counts.items())
    margin = t_quantile(degrees) * sqrt(scatter * (sums.n - 1) / sums.n)
    return tanh(centre - margin), tanh(centre + margin)


def _fisher(kappa: float | None) -> float:
    """Return Fisher's z: infinite for 1 and −1, NaN for an undefined kappa."""
    if kappa is None:
        return nan
    return atanh(kappa) if abs(kappa) < 1 else copysign(inf, kappa)
