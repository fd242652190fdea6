"""What policies share: from scores to a choice, random numbers of an event, and the counts in every state."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from hashlib import blake2b
from itertools import accumulate
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.policies.interface import Choice, Generator

_TIE = 1e-9
_SPARE_BITS = 11  # of 64; a float's mantissa holds 53
_ONE = 1 << 53


def draw_choice(scores: Floats, epsilon: float, features: Floats, generator: Generator) -> Choice:
    """Draw one of the best candidates, or with probability ε any candidate; uniformly in both cases."""
    propensities = epsilon_greedy_propensities(scores.tolist(), epsilon)
    cumulative = list(accumulate(propensities))
    position = bisect_right(cumulative, generator.random() * cumulative[-1])
    return Choice(position, scores, np.array(propensities), epsilon, features)


def epsilon_greedy_propensities(scores: list[float], epsilon: float) -> list[float]:
    """Return the exact propensities. Scores that are equal up to rounding are tied."""
    least, by_chance = max(scores) - _TIE, epsilon / len(scores)
    best = [score >= least for score in scores]
    of_best = (1 - epsilon) / sum(best) + by_chance
    return [of_best if is_best else by_chance for is_best in best]


class EventRng:
    """Random numbers that depend only on the event, on every machine, so that a retried request gets the same answer.

    Each number is a digest of the event and a counter. That takes a fifth of the time of seeding a regular generator,
    and does not depend on the installed version of one.
    """

    def __init__(self, policy: str, user_id: str, event_id: str) -> None:
        self._event = "\n".join((policy, user_id, event_id)).encode()
        self._drawn = 0

    def random(self) -> float:
        self._drawn += 1
        digest = blake2b(self._event, digest_size=8, salt=self._drawn.to_bytes(8, "little")).digest()
        return (int.from_bytes(digest, "little") >> _SPARE_BITS) / _ONE


def read_counts(data: Mapping[str, Any]) -> tuple[int, float]:
    """Return the number of rewards in a state's data, and their sum; raise ValueError if either is malformed."""
    n, total = data.get("n"), data.get("reward_sum")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n is {n!r}, not a count")
    if not isinstance(total, int | float) or not math.isfinite(total):
        raise ValueError(f"reward_sum is {total!r}, not a number")
    return n, float(total)
