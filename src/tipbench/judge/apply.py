"""Apply: the scores of a checked file go to the batch first and then to each run, so that they can be finished
after a kill by applying the same file again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tipbench.errors import InvalidInput, StoredDataDamaged
from tipbench.judge.verify import verify
from tipbench.records import Batch, JudgeNote, Verdict
from tipbench.suites.load import parse_rubric
from tipbench.suites.rubric import Rubric
from tipbench.tracking.batches import find_batch, read_batch, read_verdicts, scores_text
from tipbench.tracking.interface import Experiment, StoredRun
from tipbench.tracking.runs import CELL, KIND, judge_tag, stored_cell, stored_rubric
from tipbench.tracking.store import RunStore


@dataclass(frozen=True)
class Applied:
    """What an apply did."""

    judge: str
    provisional: bool
    candidates: int
    runs: int
    overruled: int
    changed: bool  # False: the same scores were there already


def apply_file(store: RunStore, experiment: Experiment, data: dict[str, Any], now_ms: int) -> Applied:
    """Writes a judge file's scores to MLflow, all or nothing."""
    run = find_batch(store, experiment, str(data["batch"]))
    batch = read_batch(store, run)
    rubric = parse_rubric(stored_rubric(store, run), f"rubric.md of batch {batch.id}")
    verdicts = verify(data, batch, rubric)
    by_run: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_run.setdefault(verdict.slot.run_id, []).append(verdict)
    applied = Applied(
        judge=batch.judge,
        provisional=batch.provisional,
        candidates=len(verdicts),
        runs=len(by_run),
        overruled=sum(bool(verdict.overruled) for verdict in verdicts),
        changed=not batch.applied,
    )
    known = read_verdicts(store, run)
    if known and _by_slot(known) != _by_slot(verdicts):
        raise InvalidInput(f"batch {batch.id} holds other scores by judge '{batch.judge}' already; nothing was written")
    if batch.applied:
        return applied
    # By id, not by cell: the run that was judged gets the scores, even if another with its key counts by now.
    cells = {cell.run_id: cell for cell in store.runs(experiment, {KIND: CELL})}
    _check_runs(batch, by_run, cells)
    if not known:
        store.extend_run(run, {}, new_texts={"scores.json": scores_text(verdicts)}, at_ms=now_ms)
    for run_id, found in by_run.items():
        _write_scores(store, cells[run_id], batch, rubric, found, now_ms)
    store.extend_run(run, {"tipbench.applied": "true"}, at_ms=now_ms)
    return applied


def _check_runs(batch: Batch, run_ids: Iterable[str], cells: Mapping[str, StoredRun]) -> None:
    """Before anything is written: the runs are there, and no other batch's counted scores would be replaced."""
    for run_id in run_ids:
        if run_id not in cells:
            raise StoredDataDamaged(f"run {run_id} of batch {batch.id} is gone from MLflow; nothing was written")
        for note in stored_cell(cells[run_id]).judges:
            same_rubric = note.rubric_digest == batch.rubric_digest
            if same_rubric and note.batch != batch.id and not note.provisional and not batch.provisional:
                raise InvalidInput(
                    f"candidates of batch {batch.id} were scored by '{note.judge}' in batch {note.batch} meanwhile; "
                    f"nothing was written. Export again to judge what is still pending"
                )


def _write_scores(
    store: RunStore, run: StoredRun, batch: Batch, rubric: Rubric, verdicts: Sequence[Verdict], now_ms: int
) -> None:
    """The means over a run's candidates: under the judge's name, and as the run's scores where they count."""
    means = {name: fmean(verdict.scores[name] for verdict in verdicts) for name in rubric.criteria}
    means |= {name: fmean(verdict.flags[name] for verdict in verdicts) for name in rubric.flags}
    means["composite"] = fmean(verdict.composite for verdict in verdicts)
    metrics = {f"judge/{batch.judge}/{name}": value for name, value in means.items()}
    tags = judge_tag(JudgeNote(batch.judge, batch.rubric_digest, batch.id, batch.provisional))
    if not batch.provisional:
        metrics |= means
        tags |= {
            "judge_pending": "false",
            "tipbench.judged_rubric": batch.rubric_digest,
            "tipbench.judged_by": batch.judge,
        }
    store.extend_run(run, tags, metrics, at_ms=now_ms)


def _by_slot(verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    return {verdict.slot.slot: verdict for verdict in verdicts}
