"""The judging desk: batches for people who judge in the browser or over the API, and their drafts."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from tipbench.bench.bench import Bench
from tipbench.bench.compare.snapshot import rubric_of
from tipbench.bench.judge.apply import Applied, ApplyOptions, applied_report
from tipbench.bench.judge.drift import is_new
from tipbench.bench.judge.export import judge_batches
from tipbench.bench.judge.judges.catalog import PERSON, person
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.webhook import batch_key, is_fresh, verify_signature
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.judge.settle import finish_applying
from tipbench.bench.judge.verify import read_judge_data
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import OF_DECISION, is_applied
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.errors import DatabaseBusy, InvalidInput, NotFound, NothingPending, StoredDataDamaged
from tipbench.core.locks import TimedLock
from tipbench.core.untrusted import json_text
from tipbench.server.views.batches import Batches, Drafts, OpenedBatch, our_experiments, pending
from tipbench.server.views.decisions import current_round
from tipbench.server.views.sheet import (
    MAX_NOTE_LENGTH,
    NO_FIELDS,
    Given,
    Sheet,
    fill_in,
    given,
    make_sheet,
    read_change,
)
from tipbench.server.views.snapshots import SnapshotEntry, SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

_ESCAPED = 12  # bytes that a character can take in JSON, as two \uXXXX
_LOCK_TIMEOUT_S = 10.0
_LOCKS = 64  # shared by all batches
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenBatch:
    """A batch that waits for a judge's scores. It names no experiment: that might name a model."""

    batch: str
    items: int
    done: int  # completely scored items
    created_ms: int
    exported: bool = False  # to a file, and nothing was given here


@dataclass(frozen=True)
class Waiting:
    """What waits for a judge."""

    open: Sequence[OpenBatch]
    candidates: int  # outside open batches, as many as new batches would include
    is_new: bool = False  # the next batch is a small one with many anchors: the judge has too few that count
    items: int | None = None  # size of the next batch, if it is of a decision, whose batches have a size of their own


@dataclass(frozen=True)
class Saved:
    """The state of an item and its batch after a change."""

    given: Given
    done: int
    items: int


class _JudgeExperiment(NamedTuple):
    """An experiment with its snapshot and a judge's open batches."""

    experiment: Experiment
    entry: SnapshotEntry
    opened: Sequence[OpenedBatch]  # the judge's own


class JudgingDesk:
    """The judging desk of one store. Judges see only their own batches; others' are reported as not found."""

    def __init__(
        self,
        stores: StoreProvider,
        snapshots: SnapshotMemoryCache,
        drafts: Drafts,
        after_scores: Callable[[Experiment], None] = lambda _: None,
    ) -> None:
        """`after_scores` is called with an experiment whose scores have changed."""
        self._stores = stores
        self._snapshots = snapshots
        self._drafts = drafts
        self._after_scores = after_scores
        self._batches = Batches(stores, drafts)
        self._export_lock = _timed_lock()
        self._locks = tuple(_timed_lock() for _ in range(_LOCKS))

    def waiting(self, judge: str, wanted: str | None = None) -> Waiting:
        """Return what waits in all experiments, or in the wanted one, including what others have scored there."""
        found: list[OpenBatch] = []
        candidates, new, items = 0, False, None
        for one in self._experiments_for(judge, wanted):
            found += map(self._summary, one.opened)
            own, size = self._waiting_in(one, judge, unjudged=wanted is None)
            if own:  # of the newest experiment, which is next
                candidates, new, items = candidates + own, self._is_new(judge, one), size
        return Waiting(sorted(found, key=lambda one: (-one.done, -one.created_ms)), candidates, new, items)

    def _waiting_in(self, one: _JudgeExperiment, judge: str, unjudged: bool) -> tuple[int, int | None]:
        """Return how many candidates wait for the judge, and the size of the next batch if that is fixed."""
        if OF_DECISION in one.experiment.tags:
            found = current_round(self._stores, one.entry)
            own = () if found.exceeds_budget(judge) else found.next_for(judge)
            return len(own), found.items_for(judge)
        return len(pending(one.entry, judge, one.opened, unjudged)), None  # one candidate of each cell, as a batch has

    def next_batch(
        self,
        judge: str,
        experiment: str | None = None,
        items: int | None = None,
        excluded: Collection[str] = (),
        kind: str = PERSON,
    ) -> OpenBatch | None:
        """Return an open batch to continue, else a new one of what is pending; None if nothing is.

        If an experiment is named, the batch includes what others have already scored, for a second opinion. `items` is
        the size of a new batch. One that the judge has as a file is returned if there is nothing else. Nothing comes
        from the `excluded` experiments. `kind` is what the judge is, a person or an agent.
        """
        with self._export_lock:
            chosen = [one for one in self._experiments_for(judge, experiment) if one.experiment.name not in excluded]
            if experiment is not None and not chosen:
                raise NotFound(f"there is no experiment '{experiment}' here")
            summaries = [self._summary(batch) for one in chosen for batch in one.opened]
            open_ones = [one for one in summaries if not one.exported]
            if open_ones:
                return max(open_ones, key=lambda one: (one.done, one.created_ms))
            for one in reversed(chosen):  # newest first
                if self._waiting_in(one, judge, unjudged=experiment is None)[0]:
                    with suppress(NothingPending):  # somebody was faster than our snapshot
                        return self._export(one.experiment, rubric_of(one.entry.snapshot), person(judge, kind), items)
        return max(summaries, key=lambda one: one.created_ms, default=None)

    def sheet(self, batch: str, judge: str) -> Sheet:
        opened = self._batches.find(batch, judge)
        handed_in = is_applied(self._batches.read_run(opened))
        return make_sheet(opened.file, opened.rubric, self._drafts.read(batch), handed_in)

    def file(self, batch: str, judge: str) -> dict[str, Any]:
        """Return the judge file, as `--export` writes it, with what was given so far."""
        opened = self._batches.find(batch, judge)
        return fill_in(opened.file, opened.rubric, self._drafts.read(batch))

    def save(self, batch: str, judge: str, slot: str, change: Mapping[str, Any]) -> Saved:
        """Store a change to one item: {"scores": {name: 4}, "flags": {name: true}, "note": "…"}, each part optional."""
        opened = self._batches.find(batch, judge)
        checked = opened.checked
        if slot not in checked:
            raise NotFound(f"there is no item '{slot}' in batch {batch}")
        fields = read_change(change, opened.rubric)
        with self._batch_lock(batch):
            if is_applied(self._batches.read_run(opened)):
                raise InvalidInput(f"batch {batch} was handed in; what was given stays as it is")
            self._drafts.save(batch, slot, fields, self._now_ms)
        current = given(opened.rubric, checked[slot], self._drafts.read(batch).get(slot, NO_FIELDS))
        return Saved(current, self._batches.done(opened), len(checked))

    def submit(self, batch: str, judge: str) -> Applied:
        """Apply what was saved, all or nothing; raise JudgeFileError with every problem."""
        opened = self._batches.find(batch, judge)
        with self._batch_lock(batch):  # changes stored before this are handed in, later ones are refused
            if not is_applied(self._batches.read_run(opened)):
                complete = self._batches.done(opened) == len(opened.file["items"])
                options = ApplyOptions(partial=complete)  # if all is given, deleted runs are left out
                return self._apply(opened, fill_in(opened.file, opened.rubric, self._drafts.read(batch)), options)
        if finish_applying(self._stores.store(), opened.experiment, self._now_ms):
            self._snapshots.invalidate(opened.experiment.id)
        return self.report(batch, judge)

    def max_file_bytes(self, batch: str, judge: str) -> int:
        """Return the maximum size in bytes of a filled-in file of this batch, however it is formatted."""
        file = self._batches.find(batch, judge).file
        return _ESCAPED * (len(json_text(file)) + MAX_NOTE_LENGTH * len(file["items"]))

    def submit_file(self, batch: str, judge: str, content: bytes, partial: bool = False) -> Applied:
        """Apply a filled-in file, as `--apply` does."""
        opened = self._batches.find(batch, judge)
        data = read_judge_data(content, "the body")
        _check_answers(data, batch)
        return self._apply(opened, data, ApplyOptions(partial=partial))

    def report(self, batch: str, judge: str) -> Applied:
        """Return the report on a batch that was handed in, as it was then."""
        return applied_report(self._batches.applied(self._batches.find(batch, judge)))

    def reports(self, judge: str, limit: int) -> list[Applied]:
        """Return the reports on the judge's last batches in all experiments, the newest first."""
        return [applied_report(one) for one in self._batches.newest_applied(judge, limit)]

    def experiment_of(self, batch: str, judge: str) -> str:
        """Return the name of a batch's experiment, which the judge must not see."""
        return self._batches.find(batch, judge).experiment.name

    def accept(self, batch: str, by: str, why: str) -> Applied:
        """Make a batch of any judge count although the judge drifted."""
        opened = self._batches.find(batch, None)
        data = self._batches.handed_in(opened)
        return self._apply(opened, data, ApplyOptions(partial=True, replace=True, accept_drift=f"{by}: {why}"))

    def expects_calls(self, timestamp: str) -> bool:
        """Return whether a callback with this timestamp can be valid, before any of its body is read."""
        return bool(self._stores.settings.get("TIPBENCH_JUDGE_SECRET")) and is_fresh(timestamp, self._stores.clock())

    def call_back(self, batch: str, timestamp: str, signature: str, body: bytes) -> Applied | None:
        """Apply a webhook judge's scores, signed with the batch's key; return None if the signature is not valid.

        The signature is verified first, so that a caller without the key learns nothing and costs nothing.
        """
        secret = self._stores.settings.get("TIPBENCH_JUDGE_SECRET")
        if not secret or not verify_signature(
            batch_key(secret, batch), timestamp, body, signature, self._stores.clock()
        ):
            return None
        run, experiment = self._batches.find_run(batch)
        data = read_judge_data(body, "what the judge sent")
        _check_answers(data, batch)
        return self._apply_to(experiment, self._batches.rubric(run), data, ApplyOptions())

    def _batch_lock(self, batch: str) -> TimedLock:
        return self._locks[hash(batch) % _LOCKS]

    def _apply(self, opened: OpenedBatch, data: dict[str, Any], options: ApplyOptions) -> Applied:
        return self._apply_to(opened.experiment, opened.rubric, data, options)

    def _apply_to(self, experiment: Experiment, rubric: Rubric, data: dict[str, Any], options: ApplyOptions) -> Applied:
        try:
            applied = self._bench(experiment, rubric).apply(data, options)
        finally:
            self._snapshots.invalidate(experiment.id)
        self._after_scores(experiment)
        return applied

    def _is_new(self, judge: str, one: _JudgeExperiment) -> bool:
        store, rubric = self._stores.store(), rubric_of(one.entry.snapshot)
        name = f"whether {judge} is new"
        return one.entry.cached(name, lambda: is_new(judge_batches(store, one.experiment, judge, rubric)))

    def _export(self, experiment: Experiment, rubric: Rubric, judge: JudgeName, items: int | None) -> OpenBatch:
        bench = self._bench(experiment, rubric)
        exported = bench.new_batch(judge, BatchSize(items=items), "page")
        self._snapshots.invalidate(experiment.id)
        return OpenBatch(exported.file["batch"], exported.items, 0, bench.now_ms)

    def _experiments_for(self, judge: str, name: str | None) -> list[_JudgeExperiment]:
        """Return tipbench's experiments, or the one of that name, oldest first.

        Unless it was named, an experiment that can't be read is logged and skipped.
        """
        store = self._stores.store_if_any()
        version = store.version() if store else None
        found = []
        for one in our_experiments(store) if store else ():
            if store and name in (None, one.name):
                try:
                    entry = self._snapshots.get(store, one, version)
                    found.append(_JudgeExperiment(one, entry, self._batches.open_for(judge, one, entry)))
                except (StoredDataDamaged, InvalidInput) as error:
                    if name is not None:
                        raise
                    _log.warning("experiment '%s' can't be judged: %s", one.name, error)
        return found

    def _summary(self, opened: OpenedBatch) -> OpenBatch:
        batch = opened.batch
        in_file = self._batches.is_in_file(opened)
        return OpenBatch(batch.id, len(batch.slots), self._batches.done(opened), batch.created_ms, in_file)

    def _bench(self, experiment: Experiment, rubric: Rubric) -> Bench:
        """Return the bench for batches by this rubric. A batch without anchors says so in its drift report."""
        bench = self._stores.bench(experiment.name)
        bench.rubric = rubric
        try:
            _ = bench.anchors
        except InvalidInput as error:
            _log.warning("the anchors for experiment '%s' can't be used: %s", experiment.name, error)
            problem = "the anchors that belong into this batch can't be read; the server's log tells admins why"
            raise InvalidInput(problem) from error  # the original message would reveal them to a judge
        return bench

    @property
    def _now_ms(self) -> int:
        return round(self._stores.clock() * 1000)


def _check_answers(data: Mapping[str, Any], batch: str) -> None:
    if data.get("batch") != batch:
        raise InvalidInput(f"the file answers another batch than {batch}")


def _timed_lock() -> TimedLock:
    return TimedLock(_LOCK_TIMEOUT_S, lambda: DatabaseBusy("somebody else is at it; try again in a moment"))
