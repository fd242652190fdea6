"""The test of the leader: whether the row with the highest mean beats each other row in a paired test.

The top group asks how far apart any of so many equal rows may lie, which is more than a winner needs. Here every pair
is tested by itself, two-sided, with no correction for the number of rows: the more rows there are, the harder it is for
one of them to be ahead of all the others by chance. For normal means of equal variance that is proven (Gutmann and
Maymin 1987); `benchmarks/leaderboard` measures it for scores of other kinds. The other rows are not compared.

Assumptions: units are independent, and the difference of two equally good rows in a unit could as well have had the
other sign. That holds where equally good rows are exchangeable within a unit, and where they differ in variance but
scatter symmetrically. The test of a pair is then exact for any distribution and any number of units. Few units prove
nothing, whatever the scores: with n units no p-value is below 2 ** (1 − n), not even if the differences never vary.
"""

from dataclasses import dataclass

import numpy as np

from tipbench.statistics.units import DRAWS, NEGLIGIBLE, Floats, Paired, zero_rounding_errors

LEVEL = 1 / 32  # of each pair; below that of the top group, so that both tests together stay below 5 %
_MAX_UNITS = 256  # more are merged
_MAX_ENUMERATED = 12  # units of which every pattern of signs is tried, as there are fewer than `DRAWS`


@dataclass(frozen=True)
class LeaderTest:
    """The row with the highest mean, and for each other row the p-value of lying this far behind it by chance."""

    leader: int
    p: Floats  # of each row against the leader; 1 for the leader itself

    @property
    def weakest_p(self) -> float:
        """The p-value of the pair that is furthest from being significant; 1 if there is no other row."""
        return float(np.delete(self.p, self.leader).max(initial=0.0)) if len(self.p) > 1 else 1.0

    def winner(self, level: float = LEVEL) -> int | None:
        """Return the leader if it beats every other row at this level, else None."""
        return self.leader if self.weakest_p <= level else None


def leader_against_others(paired: Paired, draws: int = DRAWS, seed: int = 0) -> LeaderTest:
    """Test the row with the highest mean against each other row: flip the signs of their differences unit by unit.

    The p-value of a pair is the share of all patterns of signs in which the mean difference is at least as large,
    whichever row it favours. For units of equal weight, that is the same as comparing t statistics.
    """
    data = paired.coarser(_MAX_UNITS)
    leader = int(data.means.argmax())
    differences = zero_rounding_errors(data.scores[leader] - data.scores, data.scores)
    weighted = differences * data.weights
    sizes = np.abs(_signs(data.units, draws, seed) @ weighted.T)
    observed = sizes[0] - NEGLIGIBLE * np.abs(weighted).sum(axis=1)
    return LeaderTest(leader, (sizes >= observed).mean(axis=0, dtype=np.float64))


def _signs(units: int, draws: int, seed: int) -> Floats:
    """Return patterns of signs, the observed one first: all of them, or for many units a random sample."""
    if units <= _MAX_ENUMERATED:
        flipped = (np.arange(2**units)[:, np.newaxis] >> np.arange(units)) & 1
    else:
        flipped = np.random.default_rng(seed).integers(0, 2, (1 + draws, units), dtype=np.int8)
        flipped[0] = 0
    return np.where(flipped, -1.0, 1.0)
