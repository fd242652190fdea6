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
from math import ceil, inf, sqrt
from statistics import NormalDist

import numpy as np

from tipbench.statistics.paired import units_to_detect
from tipbench.statistics.planning import POWER
from tipbench.statistics.units import DRAWS, NEGLIGIBLE, Floats, Paired, zero_rounding_errors

LEVEL = 1 / 32  # of each pair; below that of the top group, so that both tests together stay below 5 %
_MAX_UNITS = 256  # more are merged
_POWER_DRAWS, _POWER_ROUNDS = 1_000, 10  # few, because each takes long; the result is right to a few percent
_ROUNDING = 1e-9
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
    noise = np.random.default_rng(seed).standard_normal((_POWER_DRAWS, units)) @ deviations.T / sqrt(units - 1)
    z = NormalDist().inv_cdf(1 - level / 2)
    fewest = units_to_detect(level)
    needed = float(fewest)
    for _ in range(_POWER_ROUNDS):
        critical = z + (z**3 + z) / (4 * (needed - 1))
        errors = np.maximum(0.0, critical * scatter + noise) / gaps
        needed = max(fewest, float(np.quantile(errors.max(axis=1), power)) ** 2)
    return ceil(needed)
