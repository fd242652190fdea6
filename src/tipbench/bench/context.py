"""What a bench works with besides its options, and who watches it."""

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
    from tipbench.bench.engines.catalog import Engines


class Observer:
    """Sees how a bench is doing. Override what you want to see; nothing is shown by itself."""

    def planned(self, plan: "Plan") -> None:
        """Collecting begins: these cells will be generated."""

    def done(self, outcome: Outcome) -> None:
        """A cell was answered, or failed, and is stored or on its way."""

    def note(self, text: str) -> None:
        """Something that the user may want to know, in a sentence."""

    def waiting(self, text: str) -> None:
        """Another process has what is needed; the bench waits until it is done."""
        self.note(text)


@dataclass(frozen=True)
class Context:
    """What a bench works with besides its options; tests and servers pass parts of their own."""

    settings: Settings = field(default_factory=Settings)
    observer: Observer = field(default_factory=Observer)
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex[:16]
    store: RunStore | None = None  # one that is open, and stays open; else the bench opens the one its options name


@dataclass(frozen=True)
class Share:
    """A part of an experiment that is collected on one host while others collect the rest."""

    part: tuple[str, ...]
    before_admission: Callable[["Engines"], None]  # called once nobody else of ours uses the engines
