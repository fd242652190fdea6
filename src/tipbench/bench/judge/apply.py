"""Apply: the scores of a checked file go to the batch, and from there to the runs.

The batch's scores stand or don't, in one step; the runs follow from the batches (`settle`). So an apply that was cut
off is finished by applying the same file again, or by the next one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tipbench.bench.judge.drift import Anchored, Drift, assess, read_drift
from tipbench.bench.judge.sample import ANCHORS
from tipbench.bench.judge.settle import Settled, settle
from tipbench.bench.judge.verify import verify
from tipbench.bench.records import Batch, GoldItem, Verdict
from tipbench.bench.suites.rubric import parse_rubric
from tipbench.bench.tracking.batches import (
    AppliedBatch,
    accept_drift,
    applied_batches,
    batch_among,
    batch_runs,
    read_batch,
    write_verdicts,
)
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND, stored_rubric
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, StoredDataDamaged


@dataclass(frozen=True)
class ApplyOptions:
    """How a file shall be applied."""

    partial: bool = False  # take the runs that are there and scored completely
    dry_run: bool = False
    replace: bool = False  # other scores by the same judge
    accept_drift: str = ""  # by whom and why the batch counts, whatever the anchors say


AS_IT_IS = ApplyOptions()


@dataclass(frozen=True)
class Applied:
    """What an apply did, or would do."""

    judge: str
    batch: str
    provisional: bool
    candidates: int
    runs: int
    left: int  # candidates that are not scored yet, with --partial
    overruled: int
    changed: bool  # False: the same scores were there already
    replaced: int  # candidates that had other scores by this judge
    quarantine: str
    accepted: str
    drift: Drift
    settled: Settled = field(default=Settled(0))

    @property
    def counted(self) -> bool:
        return not self.provisional and not self.in_quarantine

    @property
    def in_quarantine(self) -> bool:
        """Scores that would count, but for the judge's drift."""
        return bool(self.quarantine) and not self.accepted and not self.provisional

    @property
    def in_short(self) -> str:
        note = ", in quarantine: they do not count" if self.in_quarantine else ""
        return f"{self.candidates} candidates scored by '{self.judge}'{note}"


def apply_file(
    store: RunStore,
    experiment: Experiment,
    data: dict[str, Any],
    now_ms: int,
    manner: ApplyOptions = AS_IT_IS,
    private: Iterable[GoldItem] = (),
) -> Applied:
    """Writes a judge file's scores to MLflow, all or nothing."""
    known = batch_runs(store, experiment)
    run = batch_among(known, store, experiment, str(data["batch"]))
    batch = read_batch(store, run)
    rubric = parse_rubric(stored_rubric(store, run), f"rubric.md of batch {batch.id}")
    verdicts = _of_runs_there(store, experiment, verify(data, batch, rubric, manner.partial), manner.partial)
    others = [other for other in applied_batches(store, known, rubric.digest) if other.batch.judge == batch.judge]
    standing = next((other for other in others if other.batch.id == batch.id), None)
    if standing and manner.partial:  # what was applied before stays
        given = {verdict.slot.slot for verdict in verdicts}
        verdicts += [verdict for verdict in standing.verdicts if verdict.slot.slot not in given]
    same = standing is not None and _scores(standing.verdicts) == _scores(verdicts)
    replaced = _replaced(batch, verdicts, others)
    if replaced and not manner.replace:
        raise InvalidInput(
            f"{replaced} candidates of batch {batch.id} have other scores by '{batch.judge}' already; nothing was "
            f"written. --replace puts these in their place; the old ones stay in the history"
        )
    earlier = [other.verdicts for other in reversed(others) if other.batch.id != batch.id and other.counted]
    anchored = Anchored(private, rubric)
    if anchored.unknown(verdicts) and not (batch.provisional or manner.accept_drift):
        raise InvalidInput(
            f"batch {batch.id} holds {anchored.unknown(verdicts)} anchors of a team's own file, which is not on this "
            f"machine or has changed; nothing was written. Set TIPBENCH_ANCHORS to it, or say --accept-drift 'why'"
        )
    drift = assess(verdicts, rubric, anchored, earlier, ANCHORS)
    accepted = manner.accept_drift or (standing.accepted if standing and same else "")
    applied = Applied(
        judge=batch.judge,
        batch=batch.id,
        provisional=batch.provisional,
        candidates=sum(verdict.slot.kind == "candidate" for verdict in verdicts),
        runs=len({verdict.slot.run_id for verdict in verdicts if verdict.slot.run_id}),
        left=sum(slot.kind == "candidate" for slot in batch.slots)
        - sum(verdict.slot.kind == "candidate" for verdict in verdicts),
        overruled=sum(bool(verdict.overruled) for verdict in verdicts),
        changed=not same,
        replaced=replaced,
        quarantine=standing.quarantine if standing and same else drift.quarantine,
        accepted=accepted,
        drift=drift,
    )
    if manner.dry_run:
        return applied
    with store.session():
        if not same:
            write_verdicts(store, run, verdicts, drift.as_data(), drift.quarantine, accepted, now_ms)
        elif standing and accepted != standing.accepted:
            accept_drift(store, run, accepted)
            applied = replace(applied, changed=True)
        settled = settle(store, experiment, rubric, now_ms)
    return replace(applied, settled=settled, changed=applied.changed or settled.runs > 0)


def _of_runs_there(store: RunStore, experiment: Experiment, verdicts: list[Verdict], partial: bool) -> list[Verdict]:
    """Before anything is written: the runs are there; with `partial`, those of runs that are."""
    there = {run.run_id for run in store.runs(experiment, {KIND: CELL})}
    judged = {verdict.slot.run_id for verdict in verdicts if verdict.slot.run_id}
    gone = judged - there
    if gone and (not partial or gone == judged):
        raise StoredDataDamaged(f"run {min(gone)} is gone from MLflow; nothing was written")
    return [verdict for verdict in verdicts if verdict.slot.run_id not in gone]


def report_of_applied(applied: AppliedBatch) -> Applied:
    """What an apply told, from what it stored."""
    scored = [verdict for verdict in applied.verdicts if verdict.slot.kind == "candidate"]
    try:
        drift = read_drift(applied.drift)
    except (KeyError, TypeError) as error:
        raise StoredDataDamaged(f"the drift of batch {applied.batch.id} can't be read: {error!r}") from error
    return Applied(
        judge=applied.batch.judge,
        batch=applied.batch.id,
        provisional=applied.batch.provisional,
        candidates=len(scored),
        runs=len({verdict.slot.run_id for verdict in scored}),
        left=sum(slot.kind == "candidate" for slot in applied.batch.slots) - len(scored),
        overruled=sum(bool(verdict.overruled) for verdict in applied.verdicts),
        changed=False,
        replaced=0,
        quarantine=applied.quarantine,
        accepted=applied.accepted,
        drift=drift,
    )


def _replaced(batch: Batch, verdicts: Sequence[Verdict], others: Sequence[AppliedBatch]) -> int:
    """How many candidates have other scores by this judge that stand: in this batch, or counted in another."""
    known: dict[tuple[str, int], Verdict] = {}
    for other in others:
        if other.counted or other.batch.id == batch.id:
            known |= {_item(verdict): verdict for verdict in other.verdicts if verdict.slot.kind == "candidate"}
    given = [verdict for verdict in verdicts if verdict.slot.kind == "candidate" and _item(verdict) in known]
    return sum(_score(known[_item(verdict)]) != _score(verdict) for verdict in given)


def _item(verdict: Verdict) -> tuple[str, int]:
    return verdict.slot.run_id, verdict.slot.candidate


def _score(verdict: Verdict) -> tuple[Any, ...]:
    return dict(verdict.scores), dict(verdict.flags), verdict.note


def _scores(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    return {verdict.slot.slot: _score(verdict) for verdict in verdicts}
