"""A version of the features."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import text_digest
from tipbench.recommender.records import Request

Floats = NDArray[np.floating[Any]]
_DIGITS = 13  # 52 bits, which a float holds exactly


class Features(NamedTuple):
    """Stored with every state and decision: sums over other features are other sums."""

    version: str
    names: Sequence[str]
    rows: Callable[[Request], list[list[float]]]  # a row a candidate

    @property
    def dimensions(self) -> int:
        return len(self.names)

    def matrix(self, request: Request) -> Floats:
        return np.array(self.rows(request))


# The category alone, as one number that stands for its name: all that the baseline knows of a candidate.


def rows(request: Request) -> list[list[float]]:
    return [[number_of(candidate.category)] for candidate in request.candidates]


@lru_cache(maxsize=4096)
def number_of(category: str) -> float:
    return float(int(text_digest(category)[:_DIGITS], 16))


CATEGORY = Features("category", ("category",), rows)
