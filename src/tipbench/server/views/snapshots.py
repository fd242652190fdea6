"""Snapshots of experiments, cached in memory and shared by all requests.

A snapshot is current as long as the store says that nothing was written since. During writes, each one is read again
only after a pause in proportion to the cost of reading it, so that watching a run never takes the machine from it.
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
from tipbench.bench.tracking.write_markers import marker_state
from tipbench.core.errors import NotFound
from tipbench.server.views.store_provider import StoreProvider

MAX_CELLS = 100_000  # in all cached snapshots; the last used one always stays
_WRITTEN_PAUSE = 3.0  # times the cost of reading, while the experiment is being written
_OTHERS_WRITTEN_PAUSE = 20.0  # the same, while only others are being written
_MIN_PAUSE_S = 1.0
_Value = TypeVar("_Value")


@dataclass
class SnapshotEntry:
    """A snapshot with the values derived from it, each computed once."""

    snapshot: Snapshot
    store: RunStore  # a store opened on a replaced database counts its versions anew
    version: str | None
    write_state: str | None
    taken_at: float
    cost_s: float
    _locks: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _values: dict[str, tuple[object, object]] = field(default_factory=dict)

    def cached(self, name: str, make: Callable[[], _Value], state: object = None) -> _Value:
        """Return the value of this name, made once for all who ask, and again when `state` is another one.

        Each name has its own lock, so that a quick value doesn't wait for a slow one. Only the last value of a name is
        kept, so names must be few: what a visitor asks for is no part of one.
        """
        found = self._values.get(name)
        if found is None or found[0] != state:
            with self._locks[name]:
                found = self._values.get(name)
                if found is None or found[0] != state:
                    found = self._values[name] = (state, make())
        return found[1]  # type: ignore[return-value]  # the type that `make` returned for this name


class SnapshotMemoryCache:
    """Snapshots by experiment. Reading one doesn't block access to others."""

    def __init__(self, stores: StoreProvider, clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._clock = clock
        self._lock = threading.Lock()  # never held while reading
        self._entries: OrderedDict[str, SnapshotEntry] = OrderedDict()
        self._read_locks: dict[str, threading.Lock] = {}
        self._invalidations: Counter[str] = Counter()
        self._listed: tuple[RunStore, str | None, list[Experiment]] | None = None

    def find(self, name: str) -> SnapshotEntry:
        """Return the entry of the experiment of this name; raise NotFound if there is none."""
        store = self._stores.store_if_any()
        version = store.version() if store else None
        if store and version is not None:
            entry = self._unchanged(store, name, version)
            if entry:
                return entry
        experiment = store.find_experiment(name) if store else None
        if store is None or experiment is None:
            raise NotFound(
                f"there is no experiment '{name}' here; see the list of experiments, or GET /api/bench/experiments"
            )
        return self.get(store, experiment, version)

    def all(self) -> list[tuple[RunStore, Experiment, str | None]]:
        """Return every experiment of the store, oldest first, as arguments of `get`; listed again after a write."""
        store = self._stores.store_if_any()
        if store is None:
            return []
        version = store.version()
        listed = self._listed
        if version is None or listed is None or listed[:2] != (store, version):
            listed = self._listed = (store, version, store.experiments(""))
        return [(store, experiment, version) for experiment in listed[2]]

    def get(self, store: RunStore, experiment: Experiment, version: str | None) -> SnapshotEntry:
        """Return the entry of an experiment that was read from the store when it had this version, or later.

        It may be outdated while another thread is reading it again.
        """
        entry = self._lookup(store, experiment.id)
        if entry and self._is_current(entry, store, experiment, version):
            return entry
        with self._lock:
            reading = self._read_locks.setdefault(experiment.id, threading.Lock())
        if not reading.acquire(blocking=entry is None):
            assert entry is not None
            return entry  # another thread is already reading it again
        try:
            newer = self._lookup(store, experiment.id)
            if newer is not entry and newer is not None:  # another thread has read it while we waited
                return newer
            return self._read(store, experiment, version)
        finally:
            reading.release()

    def invalidate(self, experiment_id: str) -> None:
        """Drop the experiment's entry after a write; a read that began before the write is not cached either."""
        with self._lock:
            self._entries.pop(experiment_id, None)
            self._invalidations[experiment_id] += 1

    def _unchanged(self, store: RunStore, name: str, version: str) -> SnapshotEntry | None:
        """Return the entry of this name if nothing at all was written since it was read: no query is needed then."""
        with self._lock:
            for experiment_id, entry in self._entries.items():
                if entry.store is store and entry.version == version and entry.snapshot.experiment.name == name:
                    self._entries.move_to_end(experiment_id)
                    return entry
        return None

    def _lookup(self, store: RunStore, experiment_id: str) -> SnapshotEntry | None:
        with self._lock:
            entry = self._entries.get(experiment_id)
            if entry is None or entry.store is not store:
                return None
            self._entries.move_to_end(experiment_id)
            return entry

    def _is_current(self, entry: SnapshotEntry, store: RunStore, experiment: Experiment, version: str | None) -> bool:
        if version is not None and version == entry.version:
            return True
        if experiment.name != entry.snapshot.experiment.name:  # renamed in MLflow's pages, which set no write markers
            return False
        age = self._clock() - entry.taken_at
        write_state = marker_state(experiment)
        if write_state is not None and write_state == entry.write_state:
            return store.is_shared or age < max(_MIN_PAUSE_S, _OTHERS_WRITTEN_PAUSE * entry.cost_s)
        return age < _WRITTEN_PAUSE * entry.cost_s

    def _read(self, store: RunStore, experiment: Experiment, version: str | None) -> SnapshotEntry:
        with self._lock:
            invalidations = self._invalidations[experiment.id]
        started = self._clock()
        with self._stores.timed("snapshot"):
            snapshot = load_snapshot(store, experiment, self._stores.snapshots, finish=finish_applying)
        ended = self._clock()
        entry = SnapshotEntry(snapshot, store, version, marker_state(snapshot.experiment), ended, ended - started)
        with self._lock:
            if self._invalidations[experiment.id] != invalidations:
                return entry  # valid for this caller, who asked before the write, but not for later ones
            self._entries[experiment.id] = entry
            self._entries.move_to_end(experiment.id)
            self._evict()
        return entry

    def _evict(self) -> None:
        cells = sum(len(entry.snapshot.cells) for entry in self._entries.values())
        while cells > MAX_CELLS and len(self._entries) > 1:
            _, dropped = self._entries.popitem(last=False)
            cells -= len(dropped.snapshot.cells)
