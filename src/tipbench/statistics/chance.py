"""What chance brings about: the largest of several statistics, over many random rearrangements of the same scores."""

from collections.abc import Callable

import numpy as np

from tipbench.statistics.units import NOTHING, Floats, Paired

DRAWS = 4_999
_AT_ONCE = 2_000_000  # numbers in memory
Rearrange = Callable[[Paired, int, np.random.Generator], Floats]  # so many times: times × rows × units
Largest = Callable[[Floats, Floats], Floats]  # of each rearrangement, from the scores and the units' weights


class Chance:
    """The largest statistic of each rearrangement, in order."""

    def __init__(self, data: Paired, rearrange: Rearrange, largest: Largest, draws: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        at_once = max(1, _AT_ONCE // (data.rows * max(data.rows, data.units)))
        parts = [min(at_once, draws - start) for start in range(0, draws, at_once)]
        self._sorted = np.sort(
            np.concatenate([largest(rearrange(data, times, random), data.weights) for times in parts])
        )

    def p(self, observed: Floats) -> Floats:
        """How often chance gives at least as much; never 0: what was observed is one of the arrangements too."""
        draws = len(self._sorted)
        as_much = observed - NOTHING * (1 + np.abs(observed))
        share: Floats = (1 + draws - np.searchsorted(self._sorted, as_much)) / (1 + draws)
        return share

    def critical(self, level: float) -> float:
        """What has a p of at most `level` exceeds this, and nothing else does; infinite where nothing can."""
        draws = len(self._sorted)
        place = int(np.ceil((1 + draws) * (1 - level) - 1e-9))
        return np.inf if place > draws else float((self._sorted[max(place, 1) - 1] + NOTHING) / (1 - NOTHING))


def shuffled_rows(data: Paired, times: int, random: np.random.Generator) -> Floats:
    """The rows shuffled within each unit."""
    same = np.broadcast_to(data.scores.T, (times, data.units, data.rows))
    return random.permuted(same, axis=2).transpose(0, 2, 1)


def flipped_signs(data: Paired, times: int, random: np.random.Generator) -> Floats:
    """Every unit with its own sign or the other one, the same for all rows: they may depend on each other."""
    signs: Floats = random.choice((-1.0, 1.0), (times, 1, data.units))
    return data.scores * signs
