"""What waits for a judge."""

from collections.abc import Iterable

from tipbench.bench.records import StoredCell
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.interface import StoredRun
from tipbench.bench.tracking.runs import stored_cell


def pending_runs(runs: Iterable[StoredRun], judge: str, rubric: Rubric) -> list[StoredRun]:
    """Runs that this judge has not scored by this rubric; what it scored in a batch in quarantine waits again."""
    return [run for run in runs if awaits(stored_cell(run), judge, rubric.digest)]


def waiting_runs(runs: Iterable[StoredRun], judge: str | None, rubric: Rubric) -> list[StoredRun]:
    """Runs that wait for this judge; without one, for any judge that counts."""
    if judge is None:
        return [run for run in runs if stored_cell(run).awaits_judge(rubric.digest)]
    return pending_runs(runs, judge, rubric)


def awaits(cell: StoredCell, judge: str, rubric_digest: str) -> bool:
    if not cell.candidates:
        return False
    return not any(
        note.judge == judge and note.rubric_digest == rubric_digest and (note.counted or note.provisional)
        for note in cell.judges
    )
