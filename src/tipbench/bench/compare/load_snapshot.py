"""Taking a look at an experiment: its runs are read once, or not at all where nothing has changed.

From a server, a look is kept, and taken for the truth as long as the experiment's marks (`tracking.marks`) say that
nothing was written since. A database file is read anew each time: that takes less than a second for 10,000 runs, and
MLflow's own pages may have written to it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tipbench.bench.compare.snapshot import RubricSeen, Snapshot
from tipbench.bench.compare.snapshot_cache import SnapshotDiskCache
from tipbench.bench.records import StoredCell
from tipbench.bench.tracking.batches import batch_runs, deciding_batch, is_settled, summaries
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, stored_cells, stored_rubric
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.write_markers import ABANDONED_S, state, writers
from tipbench.core.errors import TrackingError, TrackingUnreachable

_log = logging.getLogger(__name__)
Finish = Callable[[RunStore, Experiment, int], object]  # ends what was begun and not ended, at this moment


def load_snapshot(
    store: RunStore,
    experiment: Experiment,
    snapshots: Path,
    refresh: bool = False,
    clock: Callable[[], float] = time.time,
    finish: Finish = lambda *_: None,
) -> Snapshot:
    """What is in the experiment, which was found in the store just now: its marks are trusted.

    `looks` is the folder of what is kept; `refresh` reads everything again, whatever the marks say. `finish` is called
    before anything is read where scores have not reached all of their runs.
    """
    if not store.is_shared:
        return _read(store, experiment, finish, clock)
    kept = SnapshotDiskCache(snapshots, store.address, experiment.id)
    abandoned = _abandoned(kept, experiment, clock())
    if abandoned:
        # A mark that was set anew meanwhile belongs to somebody who writes; only a moment lies between this and that.
        standing = writers(store.experiment(experiment.name))
        gone = [key for key in abandoned if standing.get(key) == experiment.tags[key]]
        store.forget_writers(experiment, gone)
        experiment = store.experiment(experiment.name)
    before = state(experiment)
    known = kept.load(experiment, before) if before and not refresh else None
    if known:
        return known
    snapshot = _read(store, experiment, finish, clock)
    if before and _is_still_in(before, store, experiment):
        kept.save(snapshot, before)
    return snapshot


def _is_still_in(before: str, store: RunStore, experiment: Experiment) -> bool:
    """Whether nobody wrote meanwhile. What was read is good all the same; it is only not kept."""
    with suppress(TrackingError):
        found = store.find_experiment(experiment.name)
        return found is not None and (found.id, state(found)) == (experiment.id, before)
    return False


def _abandoned(kept: SnapshotDiskCache, experiment: Experiment, now: float) -> list[str]:
    """Marks of writers that were seen long ago, by this clock, and have not changed since."""
    found = writers(experiment)
    if not found:
        return []
    before = kept.writers()
    since = {key: min(now, before.get((key, value), now)) for key, value in found.items()}
    kept.save_writers({(key, value): since[key] for key, value in found.items()})
    return [key for key in found if now - since[key] >= ABANDONED_S]


def _read(store: RunStore, experiment: Experiment, finish: Finish, clock: Callable[[], float]) -> Snapshot:
    batches = batch_runs(store, experiment)
    if not all(map(is_settled, batches)):
        try:
            finish(store, experiment, round(clock() * 1000))
        except TrackingUnreachable:
            raise
        except TrackingError as error:  # who may only read sees what there is
            _log.warning(
                "Scores of '%s' that have not reached their runs stay where they are: %s", experiment.name, error
            )
        batches = batch_runs(store, experiment)
    cells = stored_cells(store, experiment)
    return Snapshot(experiment, cells, summaries(store, batches), _rubric(store, experiment, batches, cells))


def _rubric(
    store: RunStore, experiment: Experiment, batches: Sequence[StoredRun], cells: Sequence[StoredCell]
) -> RubricSeen | None:
    """Who compares by another rubric does without it: that it can't be read is told to whoever needs it."""
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
