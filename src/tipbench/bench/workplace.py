"""What the stages work with; whoever starts them chooses the concrete parts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tipbench.bench.tracking.store import RunStore


@dataclass(frozen=True)
class Workplace:
    """A store, and time and identifiers, which are passed in."""

    store: RunStore
    clock: Callable[[], float]
    new_id: Callable[[], str]
    journals: Path  # the folder of what is generated and not in MLflow yet

    @property
    def now_ms(self) -> int:
        return round(self.clock() * 1000)
