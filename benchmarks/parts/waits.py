"""How long something took, many times."""

from collections.abc import Sequence
from typing import NamedTuple


class Waits(NamedTuple):
    """In milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Waits":
        in_order = sorted(seconds)
        return cls(*(in_order[min(int(len(in_order) * share), len(in_order) - 1)] * 1000 for share in (0.5, 0.99)))

    def columns(self) -> tuple[str, str]:
        return f"{self.p50:.2f}", f"{self.p99:.2f}"
