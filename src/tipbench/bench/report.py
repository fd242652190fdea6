"""The report: the leaderboard with its evidence, from stored scores and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipbench.bench.compare.snapshot import Snapshot, no_cells
from tipbench.bench.judge.by_code import Item, code_verdicts
from tipbench.bench.judge.calibration import calibrations_in_short
from tipbench.bench.judge.export import waiting_runs
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.judge.status import JudgeStatus, judge_status
from tipbench.bench.records import StoredCandidates, Verdict
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import applied_batches, batch_runs, deciding_batch
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import newest_cell, stored_candidates, stored_rubric, stored_runs
from tipbench.bench.tracking.store import RunStore

if TYPE_CHECKING:
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.leaderboard import Leaderboard
    from tipbench.bench.compare.reliability import JudgedBatch
    from tipbench.bench.compare.texts import TextPage, Texts


@dataclass(frozen=True)
class Evidence:
    """What is behind a leaderboard: the judges' batches and the texts."""

    board: "Leaderboard"
    batches: Sequence["JudgedBatch"]
    alpha: Mapping[str, float | None]
    texts: "Texts"

    def report(self, texts: "TextPage", made_at: str) -> "Report":
        from tipbench.bench.compare.html.page import Report

        return Report(self.board, self.batches, self.alpha, texts, made_at)


def load_evidence(store: RunStore, snapshot: Snapshot, rubric: Rubric, board: "Leaderboard") -> Evidence:
    """Read the batches; texts are read when they are asked for, while the store is open."""
    from tipbench.bench.compare.reliability import judged_batches
    from tipbench.bench.compare.texts import Texts

    batches = applied_batches(store, batch_runs(store, snapshot.experiment), rubric.digest)
    verdicts = effective_verdicts(batches)

    def read(run_ids: Sequence[str]) -> dict[str, StoredCandidates]:
        runs = store.runs_by_id(snapshot.experiment, run_ids)
        return {run_id: stored_candidates(store, run) for run_id, run in runs.items()}

    return Evidence(
        board=board,
        batches=judged_batches(batches),
        alpha=judge_status(batches, rubric).alpha,
        texts=Texts(board, _verdicts_of(board, verdicts, code_verdicts(snapshot.cells, rubric)), read),
    )


def _verdicts_of(
    board: "Leaderboard", by_judge: Mapping[str, Mapping[Item, Verdict]], by_code: Mapping[Item, Verdict]
) -> list[Mapping[Item, Verdict]]:
    """Return the verdicts behind a leaderboard: those of its judges, and code's where no judge has given one."""
    judged = [by_judge[judge] for judge in board.judges if judge in by_judge]
    return [*judged, {item: one for item, one in by_code.items() if not any(item in own for own in judged)}]


def make_report(
    store: RunStore, snapshot: Snapshot, rubric: Rubric, board: "Leaderboard", made_at: str, home: Path
) -> "Report":
    """Build a report: the leaderboard, the reliability of its judges, and what the models wrote."""
    evidence = load_evidence(store, snapshot, rubric, board)
    report = evidence.report(evidence.texts.in_file(), made_at)
    return replace(report, calibrations=calibrations_in_short(home, board.rubric_digest))


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
    run = deciding_batch(batch_runs(store, experiment)) or newest_cell(store, experiment)
    if run is None:
        raise no_cells(experiment)
    return parse_rubric(stored_rubric(store, run), f"rubric.md of run {run.run_id}")
