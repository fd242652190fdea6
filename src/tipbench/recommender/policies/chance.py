"""From scores to a choice: how likely each candidate is, and the draw."""

from hashlib import blake2b

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.policies.interface import Choice, Generator

_TIE = 1e-9
_SPARE_BITS = 11  # of 64; a float holds 53
_ONE = 1 << 53


def drawn(scores: Floats, epsilon: float, features: Floats, generator: Generator) -> Choice:
    """Mostly one of the best, each as likely as the others; with a chance of ε, any candidate at all."""
    propensities = mostly_best(scores, epsilon)
    up_to = propensities.cumsum()
    place = int(up_to.searchsorted(generator.random() * up_to[-1], side="right"))
    return Choice(place, scores, propensities, epsilon, features)


def mostly_best(scores: Floats, epsilon: float) -> Floats:
    """Exact propensities. Scores that are equal but for rounding share what the best gets."""
    best = scores >= scores.max() - _TIE
    propensities: Floats = best * ((1 - epsilon) / np.count_nonzero(best))
    propensities += epsilon / len(scores)
    return propensities


class EventRng:
    """Chance that is the same for the same event, on every machine: a request that is sent again is answered as before.

    Each number is a digest of the event and of how many were drawn before: a fifth of the time that seeding a usual
    generator takes, and the same whichever version of it is installed.
    """

    def __init__(self, policy: str, user_id: str, event_id: str) -> None:
        self._event = "\n".join((policy, user_id, event_id)).encode()
        self._drawn = 0

    def random(self) -> float:
        self._drawn += 1
        digest = blake2b(self._event, digest_size=8, salt=self._drawn.to_bytes(8, "little")).digest()
        return (int.from_bytes(digest, "little") >> _SPARE_BITS) / _ONE
