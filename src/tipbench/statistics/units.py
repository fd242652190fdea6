"""The units over which rows are compared, and permutation tests on them.

A unit is what is sampled independently, such as a persona or a scenario. Comparisons are paired: every row has a score
for every unit, the mean over the unit's scenarios. A unit's weight is its number of scenarios.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PRIOR_DEGREES = 8.0  # degrees of freedom by which a variance is shrunk to the common one: few units say little about it
NEGLIGIBLE = 1e-6  # in standard errors and in scores: above rounding errors, below anything that matters
_MAX_UNITS = 32  # more are merged: a test over fewer, larger units is as exact and loses next to no power
DRAWS = 4_999
_AT_ONCE = 2_000_000  # numbers in memory at a time
MaxStatistic = Callable[[Floats, Floats], Floats]  # scores, units' weights → largest statistic of each rearrangement


@dataclass(frozen=True)
class Paired:
    """Scores as rows × units; the units' weights sum to 1.

    Raises ValueError if there are no rows or no units, or if a score is not a finite number.
    """

    scores: Floats
    weights: Floats

    def __post_init__(self) -> None:
        if not self.scores.size:
            raise ValueError("no scores, so nothing to compare")
        if not np.isfinite(self.scores).all():
            raise ValueError("a score is not a number")

    @property
    def rows(self) -> int:
        return int(self.scores.shape[0])

    @property
    def units(self) -> int:
        return int(self.scores.shape[1])

    @property
    def means(self) -> Floats:
        means: Floats = self.scores @ self.weights
        return means

    def only(self, rows: Sequence[int] | NDArray[np.intp]) -> "Paired":
        return Paired(self.scores[np.asarray(rows, dtype=np.intp)], self.weights)

    def coarser(self, max_units: int = _MAX_UNITS) -> "Paired":
        """Merge neighbouring units until there are at most `max_units`; the result depends on their order."""
        if self.units <= max_units:
            return self
        blocks = np.arange(self.units) * max_units // self.units
        return _grouped(self.scores, self.weights, blocks)


def paired(scores: Floats, units: Sequence[Hashable] | None = None) -> Paired:
    """Build `Paired` from scores as rows × scenarios; `units` names the unit of each scenario, None: one unit each."""
    each = Paired(scores, np.full(scores.shape[1], 1 / max(scores.shape[1], 1)))
    if units is None:
        return each
    if len(units) != each.units:
        raise ValueError(f"units of {len(units)} scenarios, but scores of {each.units}")
    index_of = {unit: index for index, unit in enumerate(dict.fromkeys(units))}
    return _grouped(each.scores, each.weights, np.array([index_of[unit] for unit in units]))


def _grouped(scores: Floats, weights: Floats, indices: NDArray[np.intp]) -> Paired:
    totals: Floats = np.bincount(indices, weights).astype(np.float64)
    sums = np.array([np.bincount(indices, row) for row in scores * weights])
    return Paired(sums / totals, totals)


def means_and_errors(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return means over units (the last axis) and their standard errors; variances are shrunk to a common one.

    The common variance is the median: a row with a large effect varies widely once it is rearranged, and shrinking to
    a mean that includes it would make the statistics of all rows too small.
    """
    units = scores.shape[-1]
    means = scores @ weights
    deviations = (scores - means[..., np.newaxis]) * (weights * units)
    variances = (deviations**2).sum(axis=-1) / (max(units - 1, 1) * units)
    usual = np.median(variances, axis=-1, keepdims=True)
    return means, np.sqrt(shrunken_variances(variances, usual, units, float(np.abs(scores).max())))


def with_error_floor(means: Floats, errors: Floats, units: int) -> Floats:
    """Return errors for an interval, at least as if one more unit showed no effect: equal values are no proof."""
    return np.maximum(errors, np.abs(means) / (units + 1))


def shrunken_variances(variances: Floats, usual: Floats, units: int, largest: float) -> Floats:
    """Shrink variances towards the usual one, and never to 0: a difference that never varies is no proof.

    `largest` is the largest score, with which rounding errors grow.
    """
    shrunken: Floats = (PRIOR_DEGREES * usual + (units - 1) * variances) / (PRIOR_DEGREES + units - 1)
    return np.maximum(shrunken, (NEGLIGIBLE * max(1.0, largest)) ** 2)


def zero_rounding_errors(residuals: Floats, scores: Floats) -> Floats:
    """Set residuals of scores that are mere rounding errors to 0: in every unit, they would look significant."""
    return np.where(np.abs(residuals) > 1e-12 * np.abs(scores).max(), residuals, 0.0)


def max_abs_t(scores: Floats, weights: Floats) -> Floats:
    """For each arrangement, return the largest |mean| of all rows in standard errors."""
    means, errors = means_and_errors(scores, weights)
    largest: Floats = (np.abs(means) / errors).max(axis=-1)
    return largest


Rearrange = Callable[[Paired, int, np.random.Generator], Floats]  # data, times, random → times × rows × units


# The null distribution: the largest of several statistics, over many random rearrangements of the same scores.


class NullDistribution:
    """The largest statistic of each random rearrangement, sorted."""

    def __init__(self, data: Paired, rearrange: Rearrange, max_statistic: MaxStatistic, draws: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        chunk = max(1, _AT_ONCE // (data.rows * max(data.rows, data.units)))
        sizes = [min(chunk, draws - start) for start in range(0, draws, chunk)]
        self._sorted = np.sort(
            np.concatenate([max_statistic(rearrange(data, times, random), data.weights) for times in sizes])
        )

    def p(self, observed: Floats) -> Floats:
        """Return p-values; never 0, because the observed arrangement counts as one of the arrangements."""
        draws = len(self._sorted)
        threshold = observed - NEGLIGIBLE * (1 + np.abs(observed))
        share: Floats = (1 + draws - np.searchsorted(self._sorted, threshold)) / (1 + draws)
        return share

    def critical(self, level: float) -> float:
        """Return the critical value: exactly the statistics above it have p ≤ `level`; infinite if none can."""
        draws = len(self._sorted)
        rank = int(np.ceil((1 + draws) * (1 - level) - 1e-9))
        return np.inf if rank > draws else float((self._sorted[max(rank, 1) - 1] + NEGLIGIBLE) / (1 - NEGLIGIBLE))


def shuffled_rows(data: Paired, times: int, random: np.random.Generator) -> Floats:
    """Return the scores with the rows shuffled within each unit."""
    same = np.broadcast_to(data.scores.T, (times, data.units, data.rows))
    return random.permuted(same, axis=2).transpose(0, 2, 1)


def flipped_signs(data: Paired, times: int, random: np.random.Generator) -> Floats:
    """Return the scores with random signs per unit, the same for all rows, because rows may depend on each other."""
    signs: Floats = random.choice((-1.0, 1.0), (times, 1, data.units))
    return data.scores * signs
