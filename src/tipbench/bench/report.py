"""The report: the leaderboard with its evidence, from stored scores and texts."""

from typing import TYPE_CHECKING

from tipbench.bench.compare.snapshot import Snapshot, no_cells
from tipbench.bench.judge.export import waiting_runs
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.judge.status import JudgeStatus, judge_status
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import applied_batches, batch_runs, deciding_batch
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND, stored_candidates, stored_rubric, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import StoredDataDamaged

if TYPE_CHECKING:
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.leaderboard import Leaderboard


def make_report(store: RunStore, snapshot: Snapshot, rubric: Rubric, board: "Leaderboard", made_at: str) -> "Report":
    """Build a report: the leaderboard, the reliability of its judges, and example texts."""
    from tipbench.bench.compare.examples import judged_batches, pick_examples
    from tipbench.bench.compare.html.page import Report

    batches = applied_batches(store, batch_runs(store, snapshot.experiment), rubric.digest)
    verdicts = effective_verdicts(batches)
    shown_verdicts = [verdicts[judge] for judge in board.judges if judge in verdicts]
    cells = {cell.run_id: cell for cell in snapshot.cells}

    def text_of(run_id: str, candidate: int) -> str:
        found = store.runs(snapshot.experiment, {KIND: CELL, "tipbench.cell_key": cells[run_id].key})
        texts = [stored_candidates(store, run).texts for run in found if run.run_id == run_id]
        if not texts or candidate >= len(texts[0]):
            raise StoredDataDamaged(f"candidate {candidate} of run {run_id} was judged but is gone now; try --refresh")
        return texts[0][candidate]

    return Report(
        board=board,
        batches=judged_batches(batches),
        alpha=judge_status(batches, rubric).alpha,
        examples=pick_examples(snapshot.cells, shown_verdicts, text_of),
        made_at=made_at,
    )


def status_of_judges(
    store: RunStore, experiment: Experiment, rubric: Rubric
) -> tuple[JudgeStatus, dict[tuple[str, int], str]]:
    """Return the status of the judges, and the texts of the items they disagree on most."""
    runs = {run.run_id: run for run in stored_runs(store, experiment)}
    pending = len(waiting_runs(runs.values(), None, rubric))
    status = judge_status(applied_batches(store, batch_runs(store, experiment), rubric.digest), rubric, pending)
    wanted = {disputed.item for disputed in status.disputed}
    texts = {
        (run_id, number): stored_candidates(store, runs[run_id]).texts[number]
        for run_id, number in wanted
        if run_id in runs
    }
    return status, texts


def current_rubric(store: RunStore, experiment: Experiment) -> Rubric:
    """Return the rubric of the newest counted scores, else of the newest provisional ones, else of the newest cell."""
    run = deciding_batch(batch_runs(store, experiment))
    runs = [run] if run else stored_runs(store, experiment)
    if not runs:
        raise no_cells(experiment)
    return parse_rubric(stored_rubric(store, runs[-1]), f"rubric.md of run {runs[-1].run_id}")
