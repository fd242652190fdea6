"""The environment of a bench besides its options, and its observer."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tipbench.bench.records import Outcome
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings

if TYPE_CHECKING:
    from tipbench.bench.collect.plan import Plan
    from tipbench.bench.decide.rounds import Round
    from tipbench.bench.engines.catalog import Engines


class Observer:
    """Receives progress events of a bench. Override the methods you need; by default nothing is shown."""

    def planned(self, plan: "Plan") -> None:
        """Called when collecting begins, with the cells to generate."""

    def done(self, outcome: Outcome) -> None:
        """Called when a cell was answered or failed, and is stored or being delivered."""

    def judged(self, found: "Round") -> None:
        """Called after each round of a decision that an automatic judge has scored."""

    def scored(self, done: int, of: int, cost_usd: float) -> None:
        """Called when an automatic judge has scored so many items of its batch; the cost is 0 if it is not known."""

    def published(self, done: int, of: int) -> None:
        """Called when so many cells are on MLflow's pages."""

    def note(self, text: str) -> None:
        """Called with a sentence that the user may want to read."""

    def waiting(self, text: str) -> None:
        """Called when the bench starts to wait for another process."""
        self.note(text)


@dataclass(frozen=True)
class Context:
    """Dependencies of a bench besides its options; tests and servers pass their own."""

    settings: Settings = field(default_factory=Settings)
    observer: Observer = field(default_factory=Observer)
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex[:16]
    store: RunStore | None = None  # an open store, which the bench leaves open; None: it opens the one its options name


@dataclass(frozen=True)
class Share:
    """The part of an experiment that one host collects while others collect the rest."""

    part: tuple[str, ...]
    before_admission: Callable[["Engines"], None]  # called once the engines are locked
