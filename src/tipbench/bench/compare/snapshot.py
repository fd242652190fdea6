"""A snapshot of an experiment: everything that a comparison reads, and how it is loaded and cached."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from tipbench.bench.records import JudgeNote, StoredCell
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import BatchSummary, batch_runs, deciding_batch, is_settled, summaries
from tipbench.bench.tracking.decisions import DecisionSummary, summarize_decision
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, stored_cells, stored_rubric
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.write_markers import ABANDONED_S, marker_state, writers
from tipbench.core.cache import DiskCache
from tipbench.core.errors import InvalidInput, StoredDataDamaged, TrackingError, TrackingUnreachable
from tipbench.core.identity import data_digest
from tipbench.core.version import __version__

MAX_FILES = 50
_CELL_FIELDS = tuple(field.name for field in fields(StoredCell))
_log = logging.getLogger(__name__)
Finish = Callable[[RunStore, Experiment, int], object]  # completes interrupted writes of scores; gets the time in ms


@dataclass(frozen=True)
class RubricSeen:
    """The rubric that the experiment is judged by, as stored with a run."""

    run_id: str
    text: str
    problem: str = ""  # why the text could not be read


@dataclass(frozen=True)
class Snapshot:
    """What a comparison reads, whatever order MLflow returned runs in. Holds no text by a model, and no secret."""

    experiment: Experiment
    cells: tuple[StoredCell, ...]  # each once, oldest first
    batches: tuple[BatchSummary, ...]  # those that hold scores, in the order in which they were applied
    rubric: RubricSeen | None  # None: there are no cells yet
    decision: DecisionSummary | None = None  # in rounds, if the experiment holds one

    def kappas(self, rubric_digest: str) -> dict[str, Mapping[str, float | None]]:
        """Return each judge's κ with the anchors in its latest batch by this rubric; empty where not assessable."""
        by_rubric = [batch for batch in self.batches if batch.rubric_digest == rubric_digest]
        in_order = sorted(by_rubric, key=lambda batch: batch.counted)  # counted batches come last and win
        return {batch.judge: batch.kappas for batch in in_order}


def rubric_of(snapshot: Snapshot) -> Rubric:
    """Return the rubric that the experiment is judged by; raise where there is none or it can't be read."""
    if snapshot.rubric is None:
        raise no_cells(snapshot.experiment)
    if snapshot.rubric.problem:
        raise StoredDataDamaged(snapshot.rubric.problem)
    return parse_rubric(snapshot.rubric.text, f"rubric.md of run {snapshot.rubric.run_id}")


def no_cells(experiment: Experiment) -> InvalidInput:
    return InvalidInput(
        f"experiment '{experiment.name}' has no cells yet; collect some: tipbench collect --experiment "
        f"{experiment.name}"
    )


_KINDS = (StoredCell, JudgeNote, BatchSummary, RubricSeen, DecisionSummary)
_FORMAT = data_digest([2, *([kind.__name__, *(field.name for field in fields(kind))] for kind in _KINDS)])


# The disk cache of snapshots.
#
# A file written by another version, or for another store, counts as a cache miss. Cells are stored by column, because
# most of their values repeat. The file holds a snapshot or, while somebody writes to the experiment, the times since
# which the writers' markers were seen.


class SnapshotDiskCache:
    """The cache file of one experiment."""

    def __init__(self, folder: Path, address: str, experiment_id: str) -> None:
        self._of = [_FORMAT, __version__, address, experiment_id]
        self._cache = DiskCache(folder, MAX_FILES)
        self._name = f"{data_digest([address, experiment_id])[:32]}.json"

    def load(self, experiment: Experiment, state: str) -> Snapshot | None:
        """Return the snapshot cached for this state of the experiment's write markers; None on a miss."""
        data = self._content("look")
        if data is None:
            return None
        try:
            if data["state"] != state:
                return None
            return Snapshot(
                experiment,
                _cells(data["cells"]),
                tuple(BatchSummary(*batch) for batch in data["batches"]),
                RubricSeen(*data["rubric"]) if data["rubric"] else None,
                _decision(data["decision"]),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            return None

    def save(self, snapshot: Snapshot, state: str) -> None:
        if snapshot.rubric and snapshot.rubric.problem:
            return
        data = {
            "state": state,
            "cells": _columns(snapshot.cells),
            "batches": [astuple(batch) for batch in snapshot.batches],
            "rubric": astuple(snapshot.rubric) if snapshot.rubric else None,
            "decision": asdict(snapshot.decision) if snapshot.decision else None,
        }
        self._write("look", data)

    def writers(self) -> dict[tuple[str, str], float]:
        """Return since when each writer's marker was seen, by the marker's key and value."""
        data = self._content("writers")
        try:
            return {(str(key), str(value)): float(since) for key, value, since in data or ()}
        except (TypeError, ValueError):
            return {}

    def save_writers(self, seen: Mapping[tuple[str, str], float]) -> None:
        """Store when markers were first seen, instead of the snapshot, which no state will ever match again."""
        self._write("writers", [[key, value, since] for (key, value), since in seen.items()])

    def _content(self, kind: str) -> Any:
        data = self._cache.load(self._name)
        try:
            return data[kind] if data["of"] == self._of and kind in data else None
        except (KeyError, TypeError):
            return None

    def _write(self, kind: str, data: Any) -> None:
        self._cache.save(self._name, {"of": self._of, kind: data})


def _decision(data: Any) -> DecisionSummary | None:
    return DecisionSummary(**{**data, "rows": tuple(data["rows"]), "out": tuple(data["out"])}) if data else None


def _columns(cells: tuple[StoredCell, ...]) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {name: [getattr(cell, name) for cell in cells] for name in _CELL_FIELDS}
    values = [list(metrics.values()) for metrics in columns["metrics"]]
    interned: dict[str, list[Any]] = {
        "factors": [tuple(factors.items()) for factors in columns["factors"]],
        "settings": [tuple(settings.items()) for settings in columns["settings"]],
        "judges": columns["judges"],
        "metrics": [tuple(metrics) for metrics in columns["metrics"]],  # their names
    }
    tables: dict[str, list[Any]] = {}
    for name, keys in interned.items():
        found: dict[Any, int] = {}
        columns[name] = [found.setdefault(key, len(found)) for key in keys]
        tables[name] = list(found)
    tables["judges"] = [[astuple(note) for note in notes] for notes in tables["judges"]]
    return {"columns": columns, "tables": tables, "values": values}


def _cells(data: dict[str, Any]) -> tuple[StoredCell, ...]:
    columns, tables = data["columns"], data["tables"]
    tables["judges"] = [tuple(JudgeNote(*note) for note in notes) for notes in tables["judges"]]
    for name in ("factors", "settings"):
        tables[name] = [dict(pairs) for pairs in tables[name]]
    for name in tables:
        table = tables[name]
        columns[name] = [table[number] for number in columns[name]]
    pairs = zip(columns["metrics"], data["values"], strict=True)
    columns["metrics"] = [dict(zip(names, values, strict=True)) for names, values in pairs]
    return tuple(map(StoredCell, *(columns[name] for name in _CELL_FIELDS)))


# Loading a snapshot: the runs are read once, or not at all if nothing has changed.
#
# A snapshot read from a server is cached, and trusted as long as the experiment's write markers
# (`tracking.write_markers`) say that nothing was written since. One read from a database file is trusted as long as the
# file is the same to the byte, by its stamp: so not even a change in MLflow's own pages is missed.


def load_snapshot(
    store: RunStore,
    experiment: Experiment,
    snapshots: Path,
    refresh: bool = False,
    clock: Callable[[], float] = time.time,
    finish: Finish = lambda *_: None,
) -> Snapshot:
    """Return a snapshot of the experiment, from the cache where nothing was written since.

    The markers in `experiment` are trusted, so it must have been fetched just now. `snapshots` is the cache folder;
    `refresh` reads everything again, whatever the markers say. `finish` is called before reading where scores have not
    reached all of their runs.
    """
    cache = SnapshotDiskCache(snapshots, store.address, experiment.id)
    if not store.is_shared:
        stamp = store.stamp()
        known = cache.load(experiment, stamp) if stamp and not refresh else None
        if known:
            return known
        snapshot = _read(store, experiment, finish, clock)
        if stamp and store.stamp() == stamp:
            cache.save(snapshot, stamp)
        return snapshot
    if forget_abandoned_writers(store, experiment, snapshots, clock()):
        experiment = store.experiment(experiment.name)
    before = marker_state(experiment)
    known = cache.load(experiment, before) if before and not refresh else None
    if known:
        return known
    snapshot = _read(store, experiment, finish, clock)
    if before and _is_unchanged(before, store, experiment):
        cache.save(snapshot, before)
    return snapshot


def forget_abandoned_writers(store: RunStore, experiment: Experiment, snapshots: Path, now: float) -> int:
    """Remove the markers of writers that are known to be gone; return how many. Note when others were first seen."""
    abandoned = _abandoned(SnapshotDiskCache(snapshots, store.address, experiment.id), experiment, now)
    if not abandoned:
        return 0
    # A marker that was set again meanwhile has an active writer; the window between this check and the removal is tiny.
    current = writers(store.experiment(experiment.name))
    unchanged = [key for key in abandoned if current.get(key) == experiment.tags[key]]
    store.forget_writers(experiment, unchanged)
    return len(unchanged)


def _is_unchanged(before: str, store: RunStore, experiment: Experiment) -> bool:
    """Return whether nobody wrote meanwhile. If somebody did, the snapshot is still valid, only not cached."""
    with suppress(TrackingError):
        found = store.find_experiment(experiment.name)
        return found is not None and (found.id, marker_state(found)) == (experiment.id, before)
    return False


def _abandoned(cache: SnapshotDiskCache, experiment: Experiment, now: float) -> list[str]:
    """Return the keys of writers' markers that were first seen long ago, by this clock, and have not changed since."""
    found = writers(experiment)
    if not found:
        return []
    before = cache.writers()
    since = {key: min(now, before.get((key, value), now)) for key, value in found.items()}
    cache.save_writers({(key, value): since[key] for key, value in found.items()})
    return [key for key in found if now - since[key] >= ABANDONED_S]


def _read(store: RunStore, experiment: Experiment, finish: Finish, clock: Callable[[], float]) -> Snapshot:
    batches = batch_runs(store, experiment)
    if not all(map(is_settled, batches)):
        try:
            finish(store, experiment, round(clock() * 1000))
        except TrackingUnreachable:
            raise
        except TrackingError as error:  # with read-only access, show what is stored
            _log.warning(
                "Scores of '%s' that were not written to their runs yet stay pending: %s", experiment.name, error
            )
        batches = batch_runs(store, experiment)
    cells = stored_cells(store, experiment)
    rubric = _rubric(store, experiment, batches, cells)
    return Snapshot(experiment, cells, summaries(store, batches), rubric, summarize_decision(store, experiment))


def _rubric(
    store: RunStore, experiment: Experiment, batches: Sequence[StoredRun], cells: Sequence[StoredCell]
) -> RubricSeen | None:
    """Return the stored rubric, None if there are no cells.

    If it can't be read, that is recorded instead of raised: a comparison by another rubric doesn't need it.
    """
    run = deciding_batch(batches)
    if run is None and cells:
        tags = {KIND: CELL, "tipbench.cell_key": cells[-1].key}
        run = next((one for one in store.runs(experiment, tags) if one.run_id == cells[-1].run_id), None)
    if run is None:
        return None
    try:
        return RubricSeen(run.run_id, stored_rubric(store, run))
    except TrackingUnreachable:
        raise
    except TrackingError as error:
        return RubricSeen(run.run_id, "", str(error))
