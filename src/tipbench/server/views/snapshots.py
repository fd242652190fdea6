"""Snapshots of experiments, cached in memory for everybody who asks.

A snapshot is good as long as the store says that nothing was written since. While somebody writes, each one is read
again only after a pause in proportion to what reading it costs, so that watching a run never takes the machine from it.
"""

import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tipbench.bench.compare.snapshot import Snapshot, load_snapshot
from tipbench.bench.judge.settle import finish_applying
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.write_markers import state
from tipbench.core.errors import NotFound
from tipbench.server.views.store_provider import StoreProvider

MOST_CELLS = 100_000  # in memory, of all looks; the one that was asked for last always stays
_WHILE_WRITTEN = 3.0  # times what reading took
_WHILE_OTHERS_ARE_WRITTEN = 20.0
_SHORTEST_S = 1.0
_Value = TypeVar("_Value")


@dataclass
class SnapshotEntry:
    """A look with what was made of it: each thing once, whoever asks first."""

    snapshot: Snapshot
    store: RunStore  # another one, after the database was replaced by another, counts its versions anew
    version: str | None
    marks: str | None
    taken_at: float
    cost_s: float
    _locks: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _made: dict[str, object] = field(default_factory=dict)

    def made(self, name: str, make: Callable[[], _Value]) -> _Value:
        """Who wants something quick does not wait for something slow that is being made for others."""
        if name not in self._made:
            with self._locks[name]:
                if name not in self._made:
                    self._made[name] = make()
        return self._made[name]  # type: ignore[return-value]  # what this name was made with


class SnapshotMemoryCache:
    """By experiment. Reading one does not hold up those who want another."""

    def __init__(self, stores: StoreProvider, clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._clock = clock
        self._lock = threading.Lock()  # never held while reading
        self._kept: OrderedDict[str, SnapshotEntry] = OrderedDict()
        self._reading: dict[str, threading.Lock] = {}
        self._forgotten: Counter[str] = Counter()

    def find(self, name: str) -> SnapshotEntry:
        """Raises NotFound."""
        store = self._stores.store_if_any()
        experiment = store.find_experiment(name) if store else None
        if store is None or experiment is None:
            raise NotFound(
                f"there is no experiment '{name}' here; look at the list of experiments, or GET /api/bench/experiments"
            )
        return self.of(store, experiment)

    def of(self, store: RunStore, experiment: Experiment) -> SnapshotEntry:
        """Of an experiment that was found just now."""
        version = store.version()
        kept = self._known(store, experiment.id)
        if kept and self._is_good(kept, store, experiment, version):
            return kept
        with self._lock:
            reading = self._reading.setdefault(experiment.id, threading.Lock())
        if not reading.acquire(blocking=kept is None):
            assert kept is not None
            return kept  # somebody is reading it anew right now
        try:
            now_kept = self._known(store, experiment.id)
            if now_kept is not kept and now_kept is not None:  # somebody has read it while we waited
                return now_kept
            return self._read(store, experiment, version)
        finally:
            reading.release()

    def forget(self, experiment_id: str) -> None:
        """What was written here is seen at once, also where somebody began to read before."""
        with self._lock:
            self._kept.pop(experiment_id, None)
            self._forgotten[experiment_id] += 1

    def _known(self, store: RunStore, experiment_id: str) -> SnapshotEntry | None:
        with self._lock:
            kept = self._kept.get(experiment_id)
            if kept is None or kept.store is not store:
                return None
            self._kept.move_to_end(experiment_id)
            return kept

    def _is_good(self, kept: SnapshotEntry, store: RunStore, experiment: Experiment, version: str | None) -> bool:
        if version is not None and version == kept.version:
            return True
        if experiment.name != kept.snapshot.experiment.name:  # renamed in MLflow's pages, which leave no marks
            return False
        age = self._clock() - kept.taken_at
        marks = state(experiment)
        if marks is not None and marks == kept.marks:
            return store.is_shared or age < max(_SHORTEST_S, _WHILE_OTHERS_ARE_WRITTEN * kept.cost_s)
        return age < _WHILE_WRITTEN * kept.cost_s

    def _read(self, store: RunStore, experiment: Experiment, version: str | None) -> SnapshotEntry:
        with self._lock:
            forgotten = self._forgotten[experiment.id]
        started = self._clock()
        snapshot = load_snapshot(store, experiment, self._stores.snapshots, finish=finish_applying)
        ended = self._clock()
        kept = SnapshotEntry(snapshot, store, version, state(snapshot.experiment), ended, ended - started)
        with self._lock:
            if self._forgotten[experiment.id] != forgotten:
                return kept  # good for who asked before the write, and for nobody else
            self._kept[experiment.id] = kept
            self._kept.move_to_end(experiment.id)
            self._drop_the_oldest()
        return kept

    def _drop_the_oldest(self) -> None:
        cells = sum(len(kept.snapshot.cells) for kept in self._kept.values())
        while cells > MOST_CELLS and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            cells -= len(dropped.snapshot.cells)
