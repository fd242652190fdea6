"""The six sums over pairs of scores from which kappa with quadratic weights follows."""

from collections.abc import Mapping
from typing import NamedTuple


class PairSums(NamedTuple):
    """Sums over pairs of whole numbers, so exact; one pair can be taken out without adding up again."""

    n: int
    first: int
    second: int
    first_squares: int
    second_squares: int
    squared_differences: int

    @classmethod
    def of(cls, counts: Mapping[tuple[int, int], int]) -> "PairSums":
        """`counts` says how often each pair occurs."""
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
        """1 − observed / expected disagreement, where the expected one is over all n² ways to pair first with second.

        Disagreement is the squared difference, so the number of categories cancels out. None if none is expected.
        """
        expected = self.n * (self.first_squares + self.second_squares) - 2 * self.first * self.second
        return 1 - self.n * self.squared_differences / expected if expected else None
