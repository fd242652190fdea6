"""Agreement of raters beyond chance: 1 is full agreement, 0 is chance level, below 0 is worse than chance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

Level = Literal["nominal", "ordinal", "interval"]


# The six sums over pairs of scores that determine quadratically weighted kappa.


class PairSums(NamedTuple):
    """Exact integer sums over pairs of scores; one pair can be removed without summing again."""

    n: int
    first: int
    second: int
    first_squares: int
    second_squares: int
    squared_differences: int

    @classmethod
    def of(cls, counts: Mapping[tuple[int, int], int]) -> "PairSums":
        """Compute the sums; `counts` says how often each pair occurs."""
        return cls(
            n=sum(counts.values()),
            first=sum(times * a for (a, _), times in counts.items()),
            second=sum(times * b for (_, b), times in counts.items()),
            first_squares=sum(times * a * a for (a, _), times in counts.items()),
            second_squares=sum(times * b * b for (_, b), times in counts.items()),
            squared_differences=sum(times * (a - b) ** 2 for (a, b), times in counts.items()),
        )

    def without(self, pair: tuple[int, int]) -> "PairSums":
        a, b = pair
        return PairSums(
            self.n - 1,
            self.first - a,
            self.second - b,
            self.first_squares - a * a,
            self.second_squares - b * b,
            self.squared_differences - (a - b) ** 2,
        )

    @property
    def kappa(self) -> float | None:
        """1 − observed / expected disagreement, where the expectation is over all n² ways to pair first with second.

        Disagreement is the squared difference, so the number of categories cancels out. None if the expected
        disagreement is 0.
        """
        expected = self.n * (self.first_squares + self.second_squares) - 2 * self.first * self.second
        return 1 - self.n * self.squared_differences / expected if expected else None


def weighted_kappa(first: Sequence[int], second: Sequence[int], low: int, high: int) -> float | None:
    """Cohen's kappa of two raters with quadratic weights over the categories low..high.

    None where it is undefined: no items, or both raters gave the same score to every item. Raises ValueError for a
    score outside low..high or sequences of different lengths.
    """
    return PairSums.of(score_pairs(first, second, low, high)).kappa


def krippendorff_alpha(ratings: Sequence[Sequence[int | None]], level: Level = "ordinal") -> float | None:
    """Krippendorff's alpha of any number of raters; rows are raters, columns are units, None is a missing rating.

    Units with fewer than two ratings say nothing about agreement and are ignored. None where alpha is undefined: no
    unit remains, or all remaining ratings are equal. Raises ValueError for rows of different lengths.
    """
    units = Counter(
        tuple(sorted(rating for rating in unit if rating is not None)) for unit in zip(*ratings, strict=True)
    )
    pairable = {unit: times for unit, times in units.items() if len(unit) > 1}
    totals: Counter[int] = Counter()
    for unit, times in pairable.items():
        for value in unit:
            totals[value] += times
    if len(totals) < 2:
        return None
    distances = _distances(totals, level)
    observed = sum(
        times * _disagreement(Counter(unit), distances) / (len(unit) - 1) for unit, times in pairable.items()
    )
    expected = _disagreement(totals, distances) / (totals.total() - 1)
    return 1 - observed / expected


def score_pairs(first: Sequence[int], second: Sequence[int], low: int, high: int) -> Counter[tuple[int, int]]:
    """Count how often each pair of scores occurs; raise ValueError for a score outside low..high."""
    counts = Counter(zip(first, second, strict=True))
    outside = sorted({score for pair in counts for score in pair if not low <= score <= high})
    if outside:
        raise ValueError(f"scores outside {low}..{high}: {outside}")
    return counts


def _distances(totals: Mapping[int, int], level: Level) -> dict[tuple[int, int], int]:
    """Return the squared distance of each pair of values, smaller value first, up to a factor that cancels out."""
    values = sorted(totals)
    if level == "nominal":
        return dict.fromkeys(combinations(values, 2), 1)
    positions = dict(zip(values, values, strict=True)) if level == "interval" else _doubled_ranks(totals)
    return {(a, b): (positions[a] - positions[b]) ** 2 for a, b in combinations(values, 2)}


def _doubled_ranks(totals: Mapping[int, int]) -> dict[int, int]:
    """Return twice each value's mean rank; the ordinal metric is the distance between mean ranks."""
    ranks, below = {}, 0
    for value in sorted(totals):
        ranks[value] = 2 * below + totals[value]
        below += totals[value]
    return ranks


def _disagreement(counts: Mapping[int, int], distances: Mapping[tuple[int, int], int]) -> int:
    """Return the sum of the squared distances over all pairs of the counted values."""
    return sum(counts[a] * counts[b] * distances[a, b] for a, b in combinations(sorted(counts), 2))
