"""Applies a judge file: its checked scores are written to the batch, and from there to the runs.

The batch's scores are written in a single step; the runs' scores are derived from the batches (`settle`). So an
interrupted apply is completed by applying the same file again, or by the next apply.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tipbench.bench.judge.drift import AnchorReferences, Drift, assess, borrowable, read_drift
from tipbench.bench.judge.sample import ANCHORS
from tipbench.bench.judge.settle import Settled, settle
from tipbench.bench.judge.verify import item_problems, verify
from tipbench.bench.records import Batch, GoldItem, Verdict
from tipbench.bench.suites.rubric import parse_rubric
from tipbench.bench.tracking.batches import (
    AppliedBatch,
    accept_drift,
    applied_batches,
    batch_runs,
    read_batch,
    select_batch,
    write_verdicts,
)
from tipbench.bench.tracking.interface import Experiment, Names, StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, stored_rubric
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, StoredDataDamaged
from tipbench.core.untrusted import shown


@dataclass(frozen=True)
class ApplyOptions:
    """How to apply a judge file."""

    partial: bool = False  # apply the existing runs that are completely scored
    dry_run: bool = False
    replace: bool = False  # overwrite earlier scores by the same judge
    accept_drift: str = ""  # who wants the batch to count despite drift, and why


DEFAULT_OPTIONS = ApplyOptions()


@dataclass(frozen=True)
class Applied:
    """The result of an apply, or of a dry run."""

    judge: str
    batch: str
    provisional: bool
    candidates: int
    runs: int
    left: int  # candidates without scores yet, with --partial
    overruled: int
    changed: bool  # False if the same scores were already stored
    replaced: int  # candidates that had different scores by this judge
    quarantine: str
    accepted: str
    drift: Drift
    settled: Settled = field(default=Settled(0))
    cost_usd: float = 0.0  # of judging, if the judge tells

    @property
    def counted(self) -> bool:
        return not self.provisional and not self.in_quarantine

    @property
    def in_quarantine(self) -> bool:
        """Whether the scores would count but for the judge's drift."""
        return bool(self.quarantine) and not self.accepted and not self.provisional

    @property
    def in_short(self) -> str:
        note = ", on hold: they do not count" if self.in_quarantine else ""
        cost = f" for {self.cost_usd:.2f} USD" if self.cost_usd else ""
        return f"{self.candidates} candidates scored by '{self.judge}'{cost}{note}"


def apply_file(
    store: RunStore,
    experiment: Experiment,
    data: dict[str, Any],
    now_ms: int,
    options: ApplyOptions = DEFAULT_OPTIONS,
    gold: Iterable[GoldItem] = (),
) -> Applied:
    """Write a judge file's scores to MLflow, all or nothing.

    Raises JudgeFileError with every problem of the file, InvalidInput if it would replace scores without `replace`.
    """
    known = batch_runs(store, experiment)
    run = select_batch(known, store, experiment, str(data.get("batch") or _batch_of_slots(store, known, data)))
    batch = read_batch(store, run)
    rubric = parse_rubric(stored_rubric(store, run), f"rubric.md of batch {batch.id}")
    verdicts = verify(data, batch, rubric, options.partial)
    scored_batches = applied_batches(store, known, rubric.digest)
    existing = {run.run_id for run in store.runs(experiment, {KIND: CELL}, Names())}
    verdicts = _with_existing_runs(existing, verdicts, options.partial)
    others = [other for other in scored_batches if other.batch.judge == batch.judge]
    current = next((other for other in others if other.batch.id == batch.id), None)
    if current and options.partial:  # scores that were applied before remain
        scored = {verdict.slot.slot for verdict in verdicts}
        verdicts += [verdict for verdict in current.verdicts if verdict.slot.slot not in scored]
    same = current is not None and _scores(current.verdicts) == _scores(verdicts)
    replaced = _count_replaced(batch, verdicts, others)
    if replaced and not options.replace:
        raise InvalidInput(
            f"{replaced} candidates of batch {batch.id} have other scores by '{batch.judge}' already; nothing was "
            "written. --replace replaces them; the old scores stay in the history"
        )
    earlier = borrowable([other for other in others if other.batch.id != batch.id])
    references = AnchorReferences(gold, rubric, batch.judge)
    if references.count_unknown(verdicts) and not (batch.provisional or options.accept_drift):
        raise InvalidInput(
            f"batch {batch.id} holds {references.count_unknown(verdicts)} anchors from a team's own file, which is "
            "not on this machine or has changed; nothing was written. Set TIPBENCH_ANCHORS to that file, or add "
            "--accept-drift 'why'"
        )
    drift = assess(verdicts, rubric, references, earlier, ANCHORS)
    accepted = options.accept_drift or (current.accepted if current and same else "")
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
        quarantine=current.quarantine if current and same else drift.quarantine,
        accepted=accepted,
        drift=drift,
    )
    if options.dry_run:
        return applied
    with store.session():
        if not same:
            scores = (drift.as_data(), drift.quarantine, accepted)
            run = write_verdicts(store, run, verdicts, *scores, now_ms)
            scored_batches.append(AppliedBatch(run, batch, tuple(verdicts), now_ms, *scores))
        elif current and accepted != current.accepted:
            accept_drift(store, current, accepted)
            applied = replace(applied, changed=True)
        settled = settle(store, experiment, rubric, now_ms, scored_batches)
    return replace(applied, settled=settled, changed=applied.changed or settled.runs > 0)


def usable_scores(
    store: RunStore, experiment: Experiment, batch_id: str, scores: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Return those of the scores that can be applied, and the problems of the others and what is missing."""
    run = select_batch(batch_runs(store, experiment), store, experiment, batch_id)
    batch = read_batch(store, run)
    rubric = parse_rubric(stored_rubric(store, run), f"rubric.md of batch {batch.id}")
    usable, problems = {}, []
    for slot in batch.slots:
        if slot.slot in scores:
            found = item_problems(scores[slot.slot], slot, rubric)
            problems += [f"slot {slot.slot}: {problem}" for problem in found]
            if not found:
                usable[slot.slot] = scores[slot.slot]
    missing = [slot.slot for slot in batch.slots if slot.slot not in scores]
    if missing:
        some = ", ".join(missing[:3])
        problems.append(f"{len(missing)} of {len(batch.slots)} items have no scores yet: slots {some}, …")
    return usable, problems


def _batch_of_slots(store: RunStore, runs: Sequence[StoredRun], data: Mapping[str, Any]) -> str:
    """Return the id of the batch that these slots are of, newest first; raise InvalidInput if there is none."""
    slots = set(data["scores"])
    for run in reversed(runs):
        batch = read_batch(store, run)
        if slots & {slot.slot for slot in batch.slots}:
            return batch.id
    raise InvalidInput(
        f"no batch of this experiment has a slot {shown(min(slots))}; are these scores of another experiment?"
    )


def _with_existing_runs(existing: Collection[str], verdicts: list[Verdict], partial: bool) -> list[Verdict]:
    """Return the verdicts whose runs exist; raise StoredDataDamaged if one is gone; with `partial`, if all are."""
    judged = {verdict.slot.run_id for verdict in verdicts if verdict.slot.run_id}
    gone = judged.difference(existing)
    if gone and (not partial or gone == judged):
        raise StoredDataDamaged(f"run {min(gone)} is gone from MLflow; nothing was written")
    return [verdict for verdict in verdicts if verdict.slot.run_id not in gone]


def applied_report(applied: AppliedBatch) -> Applied:
    """Rebuild the result of an apply from the stored batch."""
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


def _count_replaced(batch: Batch, verdicts: Sequence[Verdict], others: Sequence[AppliedBatch]) -> int:
    """Count candidates with different current scores by this judge: in this batch, or counted in another one."""
    known: dict[tuple[str, int], Verdict] = {}
    for other in others:
        if other.counted or other.batch.id == batch.id:
            known |= {_item(verdict): verdict for verdict in other.verdicts if verdict.slot.kind == "candidate"}
    rescored = [verdict for verdict in verdicts if verdict.slot.kind == "candidate" and _item(verdict) in known]
    return sum(_score(known[_item(verdict)]) != _score(verdict) for verdict in rescored)


def _item(verdict: Verdict) -> tuple[str, int]:
    return verdict.slot.run_id, verdict.slot.candidate


def _score(verdict: Verdict) -> tuple[Any, ...]:
    return dict(verdict.scores), dict(verdict.flags), verdict.note


def _scores(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    return {verdict.slot.slot: _score(verdict) for verdict in verdicts}
