"""The units that rows are compared over: what is drawn at random and independently, such as a persona or a scenario.

A comparison is paired: every row has a score for every unit, the mean over the scenarios in it. Units weigh as many
scenarios as they hold.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BORROWED = 8.0  # degrees of freedom that the scatter of one borrows from that of all: few units tell little about it
NOTHING = 1e-6  # standard errors, and scores: rounding errors are less, and nothing that matters is
_MOST_UNITS = 32  # more are put together: a test over fewer, larger units is as exact, and loses next to nothing
DRAWS = 4_999
_AT_ONCE = 2_000_000  # numbers in memory
Largest = Callable[[Floats, Floats], Floats]  # of each rearrangement, from the scores and the units' weights


@dataclass(frozen=True)
class Paired:
    """Scores of rows (down) in units (across); the weights of the units add up to 1.

    No rows, no units or a score that is no number are a ValueError.
    """

    scores: Floats
    weights: Floats

    def __post_init__(self) -> None:
        if not self.scores.size:
            raise ValueError("no scores, so nothing to compare")
        if not np.isfinite(self.scores).all():
            raise ValueError("a score is no number")

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

    def coarser(self, most: int = _MOST_UNITS) -> "Paired":
        """Neighbouring units put together, until there are no more than `most`; so their order makes a difference."""
        if self.units <= most:
            return self
        blocks = np.arange(self.units) * most // self.units
        return _grouped(self.scores, self.weights, blocks)


def paired(scores: Floats, units: Sequence[Hashable] | None = None) -> Paired:
    """Rows down, scenarios across; `units` names the unit of each scenario, None: each is its own."""
    each = Paired(scores, np.full(scores.shape[1], 1 / max(scores.shape[1], 1)))
    if units is None:
        return each
    if len(units) != each.units:
        raise ValueError(f"units of {len(units)} scenarios, but scores of {each.units}")
    places = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    return _grouped(each.scores, each.weights, np.array([places[unit] for unit in units]))


def _grouped(scores: Floats, weights: Floats, places: NDArray[np.intp]) -> Paired:
    together: Floats = np.bincount(places, weights).astype(np.float64)
    sums = np.array([np.bincount(places, row) for row in scores * weights])
    return Paired(sums / together, together)


def means_and_errors(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Means over units (the last axis) and their standard errors; the scatter of each row borrows from that of all.

    From the middle one: a row with a large effect scatters widely once it is rearranged, and borrowing from it, chance
    would bring about little.
    """
    units = scores.shape[-1]
    means = scores @ weights
    off = (scores - means[..., np.newaxis]) * (weights * units)
    variances = (off**2).sum(axis=-1) / (max(units - 1, 1) * units)
    usual = np.median(variances, axis=-1, keepdims=True)
    return means, np.sqrt(borrowing(variances, usual, units, float(np.abs(scores).max())))


def never_sure(means: Floats, errors: Floats, units: int) -> Floats:
    """Errors for an interval: at least as if in one more unit nothing had happened. Equal values are no certainty."""
    return np.maximum(errors, np.abs(means) / (units + 1))


def borrowing(variances: Floats, usual: Floats, units: int, largest: float) -> Floats:
    """Variances drawn towards the usual one, and never nothing: a difference that never varies is no certainty.

    `largest` is the largest score: the larger, the larger are rounding errors.
    """
    drawn: Floats = (BORROWED * usual + (units - 1) * variances) / (BORROWED + units - 1)
    return np.maximum(drawn, (NOTHING * max(1.0, largest)) ** 2)


def beyond_rounding(left: Floats, scores: Floats) -> Floats:
    """What is left of scores, with 0 for mere rounding errors: found in every unit, they would look beyond chance."""
    return np.where(np.abs(left) > 1e-12 * np.abs(scores).max(), left, 0.0)


def largest_size(scores: Floats, weights: Floats) -> Floats:
    """Of all rows the mean that is most standard errors away from 0, one for each arrangement."""
    means, errors = means_and_errors(scores, weights)
    largest: Floats = (np.abs(means) / errors).max(axis=-1)
    return largest


Rearrange = Callable[[Paired, int, np.random.Generator], Floats]  # so many times: times × rows × units


# What chance brings about: the largest of several statistics, over many random rearrangements of the same scores.


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
