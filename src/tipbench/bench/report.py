"""The report: the leaderboard with its evidence, from stored scores and texts; and its answer for MLflow's pages."""

import logging
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
from tipbench.bench.tracking.descriptions import DESCRIPTION, summary_of, with_summary
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import stored_candidates, stored_rubric, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import TipbenchError
from tipbench.core.identity import text_digest

if TYPE_CHECKING:
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.leaderboard import Leaderboard
    from tipbench.bench.compare.reliability import JudgedBatch
    from tipbench.bench.compare.texts import TextPage, Texts

_AS_OF = "As of "
_log = logging.getLogger(__name__)


def describe_experiment(store: RunStore, snapshot: Snapshot, board: "Leaderboard", made_at: str) -> None:
    """Write the leaderboard's answer to the experiment's description in MLflow, if it says something new.

    It is for readers of MLflow's pages only: if the store is busy, out of reach or read-only, the description stays as
    it is. The answer by another rubric than the experiment's own is not written.
    """
    from tipbench.bench.compare.messages import as_description

    if snapshot.rubric is None or text_digest(snapshot.rubric.text) != board.rubric_digest:
        return
    answer = as_description(board)
    try:
        if _says(snapshot.experiment, answer):
            return
        experiment = store.find_experiment(snapshot.experiment.name)  # somebody may have edited it meanwhile
        if experiment is None or experiment.id != snapshot.experiment.id or _says(experiment, answer):
            return
        description = with_summary(experiment.tags.get(DESCRIPTION), f"{answer}\n\n{_AS_OF}{made_at}")
        if description is not None:
            store.describe_experiment(experiment, description)
    except TipbenchError as error:
        _log.info("The description of experiment '%s' stays as it is: %s", snapshot.experiment.name, error)


def _says(experiment: Experiment, answer: str) -> bool:
    """Return whether the experiment's description says the same, whenever that was written."""
    summary = summary_of(experiment.tags.get(DESCRIPTION, ""))
    return summary is not None and summary.rpartition(f"\n\n{_AS_OF}")[0] == answer


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
    run = deciding_batch(batch_runs(store, experiment))
    runs = [run] if run else stored_runs(store, experiment)
    if not runs:
        raise no_cells(experiment)
    return parse_rubric(stored_rubric(store, runs[-1]), f"rubric.md of run {runs[-1].run_id}")
