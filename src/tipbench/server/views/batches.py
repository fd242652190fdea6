"""Batches of the judging desk: found in the store, opened, and cached while in use."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tipbench.bench.compare.snapshot import rubric_of
from tipbench.bench.judge.export import awaits
from tipbench.bench.records import Batch, StoredCell
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import (
    BATCH,
    FILE,
    JOB,
    AppliedBatch,
    applied_at_ms,
    applied_batch,
    batch_file,
    exported_to,
    has_file,
    is_applied,
    open_batches,
    read_batch,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import KIND, stored_rubric
from tipbench.bench.tracking.store import RunStore
from tipbench.core.cache import LruCache
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.files import make_private_folder
from tipbench.core.sqlite import Database
from tipbench.server.views.sheet import NO_FIELDS, fill_in, given
from tipbench.server.views.snapshots import SnapshotEntry
from tipbench.server.views.store_provider import StoreProvider

_SCHEMA = """
CREATE TABLE IF NOT EXISTS drafts (
    batch TEXT, slot TEXT, part TEXT, name TEXT, value TEXT, at_ms INTEGER, PRIMARY KEY (batch, slot, part, name)
) WITHOUT ROWID
"""
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_MAX_ITEMS = 20_000  # in all batches that are cached in memory


class Drafts:
    """What judges have given but not handed in, in a small database of the server.

    It is stored field by field, so that two tabs never undo each other's changes. A field is ("scores", "tone"),
    ("flags", "overlong") or ("note", "").
    """

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self._database = Database(path, _SCHEMA, version=1)

    def save(self, batch: str, slot: str, fields: Mapping[tuple[str, str], Any], at_ms: int) -> None:
        """Store these fields; None withdraws what was given."""
        with self._database.transaction() as database:
            for (part, name), value in fields.items():
                database.execute(
                    "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?)",
                    (batch, slot, part, name, json.dumps(value), at_ms),
                )

    def read(self, batch: str) -> dict[str, dict[tuple[str, str], Any]]:
        """Return the stored fields of a batch by slot."""
        with self._database.connection() as database:
            rows = database.execute("SELECT slot, part, name, value FROM drafts WHERE batch = ?", (batch,))
            found: dict[str, dict[tuple[str, str], Any]] = {}
            for slot, part, name, value in rows:
                found.setdefault(slot, {})[part, name] = json.loads(value)
            return found

    def close(self) -> None:
        self._database.close()


@dataclass(frozen=True)
class OpenedBatch:
    """A batch and everything about it that never changes."""

    experiment: Experiment
    batch: Batch
    rubric: Rubric
    file: Mapping[str, Any]
    exported: str = ""  # FILE, JOB, or "" if it was made for the page

    @property
    def checked(self) -> dict[str, Mapping[str, bool]]:
        """Return the flags that code checked, by slot."""
        return {item["slot"]: item["checked"] for item in self.file["items"]}


class Batches:
    """The batches of all tipbench experiments in the store."""

    def __init__(self, stores: StoreProvider, drafts: Drafts) -> None:
        self._stores = stores
        self._drafts = drafts
        self._opened: LruCache[OpenedBatch] = LruCache(_MAX_ITEMS, lambda one: len(one.batch.slots))

    def find(self, batch: str, judge: str | None) -> OpenedBatch:
        """Return a judge's own batch, or anybody's if `judge` is None; raise NotFound if there is none."""
        opened = self._opened.get(batch)
        if opened is None:
            run, experiment = self.find_run(batch)
            opened = self._open(self._stores.store(), experiment, run)
        if judge is not None and opened.batch.judge != judge:
            raise _not_found(batch)
        return opened

    def find_run(self, batch: str) -> tuple[StoredRun, Experiment]:
        store = self._stores.store_if_any()
        for experiment in our_experiments(store) if store and _ID.fullmatch(batch) else ():
            assert store is not None
            for run in store.runs(experiment, {KIND: BATCH, "tipbench.batch": batch}):
                return run, experiment
        raise _not_found(batch)

    def read_run(self, opened: OpenedBatch) -> StoredRun:
        """Read the current state of the batch's run."""
        tags = {KIND: BATCH, "tipbench.batch": opened.batch.id}
        for run in self._stores.store().runs(opened.experiment, tags):
            return run
        raise _not_found(opened.batch.id)

    def open_for(self, judge: str, experiment: Experiment, entry: SnapshotEntry) -> list[OpenedBatch]:
        """Return the judge's batches that can be continued.

        Of batches that share a run, only the one with the most complete items is returned, else the newest. A batch
        with complete items stays open when one of its runs is deleted, because the scores of the others count. What a
        job exported is left out until something is given here: nobody chose its size.
        """
        found = entry.cached(f"open batches of {judge}", lambda: self._not_applied(judge, experiment))
        waiting = {cell.run_id for cell in pending(entry, judge)}
        existing = {cell.run_id for cell in entry.snapshot.cells}
        taken: set[str] = set()
        open_ones = []
        asked_for = [one for one in found if one.exported != JOB or self._drafts.read(one.batch.id)]
        for one in sorted(asked_for, key=lambda one: (self.done(one), one.batch.created_ms), reverse=True):
            own = {slot.run_id for slot in one.batch.slots if slot.run_id}
            if self.done(one):
                own &= existing
            if own and own <= waiting and not own & taken:
                taken |= own
                open_ones.append(one)
        return open_ones

    def _not_applied(self, judge: str, experiment: Experiment) -> list[OpenedBatch]:
        store = self._stores.store()
        return [self._open(store, experiment, run) for run in open_batches(store, experiment, judge) if has_file(run)]

    def is_in_file(self, opened: OpenedBatch) -> bool:
        """Return whether the judge has the batch as a file and has given nothing here."""
        return opened.exported == FILE and not self._drafts.read(opened.batch.id)

    def done(self, opened: OpenedBatch) -> int:
        """Return the number of items that are scored completely."""
        drafts = self._drafts.read(opened.batch.id)
        return sum(
            given(opened.rubric, flags, drafts.get(slot, NO_FIELDS)).complete for slot, flags in opened.checked.items()
        )

    def applied(self, opened: OpenedBatch) -> AppliedBatch:
        """Return the batch with its applied scores; raise InvalidInput if it was not handed in yet."""
        found = applied_batch(self._stores.store(), self.read_run(opened))
        if found is None:
            raise InvalidInput(f"batch {opened.batch.id} was not handed in yet")
        return found

    def newest_applied(self, judge: str, limit: int) -> list[AppliedBatch]:
        """Return the judge's last applied batches in all experiments, the newest first."""
        store = self._stores.store_if_any()
        tags = {KIND: BATCH, "tipbench.judge": judge}
        runs = [run for one in our_experiments(store) for run in store.runs(one, tags)] if store else []
        newest = sorted(filter(is_applied, runs), key=applied_at_ms, reverse=True)[:limit]
        return [found for run in newest if store and (found := applied_batch(store, run))]

    def handed_in(self, opened: OpenedBatch) -> dict[str, Any]:
        """Return the judge file as it was handed in, with the scores that MLflow stores."""
        fields = {
            verdict.slot.slot: {
                **{("scores", name): score for name, score in verdict.scores.items()},
                **{("flags", name): verdict.flags[name] for name in verdict.overruled},
                **{("flags", name): flag for name, flag in verdict.flags.items() if name not in verdict.slot.flags},
                ("note", ""): verdict.note,
            }
            for verdict in self.applied(opened).verdicts
        }
        return fill_in(opened.file, opened.rubric, fields)

    def rubric(self, run: StoredRun) -> Rubric:
        return parse_rubric(stored_rubric(self._stores.store(), run), f"rubric.md of batch run {run.run_id}")

    def _open(self, store: RunStore, experiment: Experiment, run: StoredRun) -> OpenedBatch:
        batch_id = run.tags["tipbench.batch"]
        if opened := self._opened.get(batch_id):
            return opened
        parts = (read_batch(store, run), self.rubric(run), batch_file(store, run), exported_to(run))
        opened = OpenedBatch(experiment, *parts)
        return self._opened.add(batch_id, opened)


def our_experiments(store: RunStore) -> list[Experiment]:
    return [one for one in store.experiments("") if "tipbench.suite" in one.tags]


def pending(
    entry: SnapshotEntry, judge: str, opened: Sequence[OpenedBatch] = (), unjudged: bool = False
) -> list[StoredCell]:
    """Return the cells that wait for this judge and are in none of these batches.

    With `unjudged`, only those that still wait for any judge.
    """
    if entry.snapshot.rubric is None:
        return []
    digest = rubric_of(entry.snapshot).digest
    taken = {slot.run_id for one in opened for slot in one.batch.slots}
    waiting = [cell for cell in entry.snapshot.cells if cell.run_id not in taken and awaits(cell, judge, digest)]
    return [cell for cell in waiting if cell.awaits_judge(digest)] if unjudged else waiting


def _not_found(batch: str) -> NotFound:
    return NotFound(
        f"there is no batch '{batch}' for you; the judging page, or POST /api/judging/next, gives you the next one"
    )
