"""The judging desk: batches for people who judge in the browser or over the API, with what they have given so far."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from tipbench.bench.bench import Bench
from tipbench.bench.compare.snapshot import rubric_of
from tipbench.bench.judge.apply import Applied, ApplyOptions, report_of_applied
from tipbench.bench.judge.judges.catalog import person
from tipbench.bench.judge.judges.webhook import batch_key, is_fresh, verify_signature
from tipbench.bench.judge.sample import fitting_sample
from tipbench.bench.judge.settle import finish_applying
from tipbench.bench.judge.verify import read_judge_data
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import is_applied
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.errors import DatabaseBusy, InvalidInput, NotFound, NothingPending, StoredDataDamaged
from tipbench.core.locks import TimedLock
from tipbench.core.untrusted import json_text
from tipbench.server.views.batches import Batches, Drafts, OpenedBatch, our_experiments, pending
from tipbench.server.views.sheet import LONGEST_NOTE, NOTHING, Given, Sheet, filled, given, make_sheet, read_change
from tipbench.server.views.snapshots import SnapshotEntry, SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

_ESCAPED = 12  # bytes that a letter can take in JSON, as two \uXXXX
_PATIENCE_S = 10.0
_TURNS = 64  # locks that all batches share
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenBatch:
    """A batch that waits for a judge's scores. It names no experiment: that might name a model."""

    batch: str
    items: int
    done: int  # items that are scored completely
    created_ms: int


@dataclass(frozen=True)
class Waiting:
    """What a judge finds on coming in."""

    open: Sequence[OpenBatch]
    candidates: int  # beside these, as many as batches would hold


@dataclass(frozen=True)
class Saved:
    """What stands after a change."""

    given: Given
    done: int
    items: int


class _Looked(NamedTuple):
    """An experiment as a judge finds it."""

    experiment: Experiment
    kept: SnapshotEntry
    opened: Sequence[OpenedBatch]  # the judge's own


class JudgingDesk:
    """For one store. A judge sees own batches alone; asking for another's is as asking for one that is not there."""

    def __init__(self, stores: StoreProvider, snapshots: SnapshotMemoryCache, drafts: Drafts) -> None:
        self._stores = stores
        self._looks = snapshots
        self._drafts = drafts
        self._batches = Batches(stores, drafts)
        self._exporting = _timed_lock()
        self._turns = tuple(_timed_lock() for _ in range(_TURNS))

    def waiting(self, judge: str, wanted: str | None = None) -> Waiting:
        """In all experiments, or in the one that is wanted: there, also what somebody else has scored already."""
        found: list[OpenBatch] = []
        candidates = 0
        for one in self._looked_at(judge, wanted):
            found += map(self._summary, one.opened)
            sizes = [cell.candidates for cell in pending(one.kept, judge, one.opened, unjudged=wanted is None)]
            sample = fitting_sample(sizes)  # a batch leaves out what is beyond, and so does the time it is said to take
            candidates += sum(min(sample, size) for size in sizes)
        return Waiting(sorted(found, key=lambda one: (-one.done, -one.created_ms)), candidates)

    def next_batch(self, judge: str, experiment: str | None = None) -> OpenBatch | None:
        """An open batch to go on with, else a new one of what is pending; None when nothing waits.

        Of an experiment that is named, also what somebody else has scored already: a second opinion.
        """
        with self._exporting:
            chosen = self._looked_at(judge, experiment)
            if experiment is not None and not chosen:
                raise NotFound(f"there is no experiment '{experiment}' here")
            open_ones = [self._summary(batch) for one in chosen for batch in one.opened]
            if open_ones:
                return max(open_ones, key=lambda one: (one.done, one.created_ms))
            for one in reversed(chosen):  # the newest first
                if pending(one.kept, judge, unjudged=experiment is None):
                    with suppress(NothingPending):  # somebody was quicker than our look at it
                        return self._export(one.experiment, rubric_of(one.kept.snapshot), judge)
        return None

    def sheet(self, batch: str, judge: str) -> Sheet:
        opened = self._batches.find(batch, judge)
        handed_in = is_applied(self._batches.fresh(opened))
        return make_sheet(opened.file, opened.rubric, self._drafts.of(batch), handed_in)

    def file(self, batch: str, judge: str) -> dict[str, Any]:
        """The judge's file, as `--export` writes it, with what was given so far."""
        opened = self._batches.find(batch, judge)
        return filled(opened.file, opened.rubric, self._drafts.of(batch))

    def save(self, batch: str, judge: str, slot: str, change: Mapping[str, Any]) -> Saved:
        """Keeps a change of one item: {"scores": {name: 4}, "flags": {name: true}, "note": "…"}, each part optional."""
        opened = self._batches.find(batch, judge)
        checked = opened.checked
        if slot not in checked:
            raise NotFound(f"there is no item '{slot}' in batch {batch}")
        fields = read_change(change, opened.rubric)
        with self._turn(batch):
            if is_applied(self._batches.fresh(opened)):
                raise InvalidInput(f"batch {batch} was handed in; what was given stays as it is")
            self._drafts.keep(batch, slot, fields, self._now_ms)
        stands = given(opened.rubric, checked[slot], self._drafts.of(batch).get(slot, NOTHING))
        return Saved(stands, self._batches.done(opened), len(checked))

    def submit(self, batch: str, judge: str) -> Applied:
        """Applies what was saved, all or nothing. Raises JudgeFileError with every problem."""
        opened = self._batches.find(batch, judge)
        with self._turn(batch):  # what is kept until then is handed in, what comes later is refused
            if not is_applied(self._batches.fresh(opened)):
                complete = self._batches.done(opened) == len(opened.file["items"])
                manner = ApplyOptions(partial=complete)  # where all is given, a run that somebody deleted is left out
                return self._apply(opened, filled(opened.file, opened.rubric, self._drafts.of(batch)), manner)
        if finish_applying(self._stores.store(), opened.experiment, self._now_ms):
            self._looks.forget(opened.experiment.id)
        return self.report(batch, judge)

    def longest_file(self, batch: str, judge: str) -> int:
        """Bytes that a filled-in file of this batch can have, however it is written; more is no answer to it."""
        file = self._batches.find(batch, judge).file
        return _ESCAPED * (len(json_text(file)) + LONGEST_NOTE * len(file["items"]))

    def submit_file(self, batch: str, judge: str, content: bytes, partial: bool = False) -> Applied:
        """Applies a filled-in file, as `--apply` does."""
        opened = self._batches.find(batch, judge)
        data = read_judge_data(content, "the body")
        _check_answers(data, batch)
        return self._apply(opened, data, ApplyOptions(partial=partial))

    def report(self, batch: str, judge: str) -> Applied:
        """What came of a batch that was handed in, as it was told then."""
        return report_of_applied(self._batches.applied(self._batches.find(batch, judge)))

    def accept(self, batch: str, by: str, why: str) -> Applied:
        """Lets a batch count although its judge drifted, whoever's it is."""
        opened = self._batches.find(batch, None)
        data = self._batches.handed_in(opened)
        return self._apply(opened, data, ApplyOptions(partial=True, replace=True, accept_drift=f"{by}: {why}"))

    def expects_calls(self, timestamp: str) -> bool:
        """Whether a call back of this moment can hold at all: before a byte of it is read."""
        return bool(self._stores.settings.get("TIPBENCH_JUDGE_SECRET")) and is_fresh(timestamp, self._stores.clock())

    def call_back(self, batch: str, timestamp: str, signature: str, body: bytes) -> Applied | None:
        """The scores of a judge elsewhere, signed with its batch's key; None when the signature does not hold.

        The signature is looked at before anything else: who can't sign learns nothing, and costs nothing.
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

    def _turn(self, batch: str) -> TimedLock:
        return self._turns[hash(batch) % _TURNS]

    def _apply(self, opened: OpenedBatch, data: dict[str, Any], manner: ApplyOptions) -> Applied:
        return self._apply_to(opened.experiment, opened.rubric, data, manner)

    def _apply_to(self, experiment: Experiment, rubric: Rubric, data: dict[str, Any], manner: ApplyOptions) -> Applied:
        try:
            return self._bench(experiment, rubric).apply(data, manner)
        finally:
            self._looks.forget(experiment.id)

    def _export(self, experiment: Experiment, rubric: Rubric, judge: str) -> OpenBatch:
        bench = self._bench(experiment, rubric)
        exported = bench.new_batch(person(judge), keep_file=True)
        self._looks.forget(experiment.id)
        return OpenBatch(exported.file["batch"], exported.items, 0, bench.now_ms)

    def _looked_at(self, judge: str, name: str | None) -> list[_Looked]:
        """Our experiments, or the one of that name, the oldest first. One that can't be read holds up no other."""
        store = self._stores.store_if_any()
        found = []
        for one in our_experiments(store) if store else ():
            if store and name in (None, one.name):
                try:
                    kept = self._looks.of(store, one)
                    found.append(_Looked(one, kept, self._batches.open_for(judge, one, kept)))
                except (StoredDataDamaged, InvalidInput) as error:
                    if name is not None:
                        raise
                    _log.warning("experiment '%s' can't be judged: %s", one.name, error)
        return found

    def _summary(self, opened: OpenedBatch) -> OpenBatch:
        batch = opened.batch
        return OpenBatch(batch.id, len(batch.slots), self._batches.done(opened), batch.created_ms)

    def _bench(self, experiment: Experiment, rubric: Rubric) -> Bench:
        """For batches by this rubric. A batch without anchors says so in its drift report."""
        bench = self._stores.bench(experiment.name)
        bench.rubric = rubric
        try:
            _ = bench.anchors
        except InvalidInput as error:
            _log.warning("the anchors for experiment '%s' can't be used: %s", experiment.name, error)
            problem = "the anchors that belong into this batch can't be read; the server's log tells admins why"
            raise InvalidInput(problem) from error  # its own words would tell a judge about them
        return bench

    @property
    def _now_ms(self) -> int:
        return round(self._stores.clock() * 1000)


def _check_answers(data: Mapping[str, Any], batch: str) -> None:
    if data.get("batch") != batch:
        raise InvalidInput(f"the file answers another batch than {batch}")


def _timed_lock() -> TimedLock:
    return TimedLock(_PATIENCE_S, lambda: DatabaseBusy("somebody else is at it; try again in a moment"))
