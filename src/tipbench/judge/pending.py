"""What waits for a judge."""

from tipbench.suites.rubric import Rubric
from tipbench.tracking.interface import Experiment, StoredRun
from tipbench.tracking.runs import stored_cell, stored_runs
from tipbench.tracking.store import RunStore


def pending_runs(store: RunStore, experiment: Experiment, judge: str, rubric: Rubric) -> list[StoredRun]:
    """Runs that no counted judge has scored, without those that this judge has scored by this rubric."""
    waiting = []
    for run in stored_runs(store, experiment):
        cell = stored_cell(run)
        done = any(note.judge == judge and note.rubric_digest == rubric.digest for note in cell.judges)
        if cell.awaits_judge(rubric.digest) and not done:
            waiting.append(run)
    return waiting
