"""The interface of a feature version, and the baseline's single feature."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import text_digest
from tipbench.recommender.records import Request

Floats = NDArray[np.floating[Any]]
_DIGITS = 13  # hexadecimal: 52 bits, which a float holds exactly


class Features(NamedTuple):
    """A feature version. Its name is stored with every state and decision: sums over other features differ."""

    version: str
    names: Sequence[str]
    rows: Callable[[Request], list[list[float]]]  # one row per candidate

    @property
    def dimensions(self) -> int:
        return len(self.names)

    def matrix(self, request: Request) -> Floats:
        return matrix_of(self.rows(request))


def matrix_of(rows: list[list[float]]) -> Floats:
    """Return rows of equal length as an array. Packing takes a third of the time of `np.array`."""
    numbers: list[float] = []
    for row in rows:
        numbers += row
    return np.frombuffer(bytearray(_packer(len(numbers))(*numbers))).reshape(len(rows), -1)


@lru_cache(maxsize=1024)
def _packer(numbers: int) -> Callable[..., bytes]:
    return Struct(f"{numbers}d").pack


# The baseline's only feature: the category, encoded as a number.


def rows(request: Request) -> list[list[float]]:
    return [[category_number(candidate.category)] for candidate in request.candidates]


@lru_cache(maxsize=4096)
def category_number(category: str) -> float:
    return float(int(text_digest(category)[:_DIGITS], 16))


CATEGORY = Features("category", ("category",), rows)
