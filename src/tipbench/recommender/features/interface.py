"""A version of the features."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.records import Request

Floats = NDArray[np.floating[Any]]


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
