"""Scores by a rubric of checks alone: code gives them when a cell is collected, and again when a check has changed."""

from collections.abc import Iterable, Iterator, Sequence

from tipbench.bench.records import Slot, StoredCell, Verdict
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import batch_runs
from tipbench.bench.tracking.descriptions import DESCRIPTION, code_summary, with_summary
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import (
    CELL,
    JUDGED_RUBRIC,
    KIND,
    RUBRIC_FILE,
    code_tags,
    flags_by_code,
    stored_candidates,
    stored_cell,
)
from tipbench.bench.tracking.store import RunStore
from tipbench.core.identity import SHORT

Item = tuple[str, int]  # run id, index of the candidate


def code_verdicts(cells: Iterable[StoredCell], rubric: Rubric) -> dict[Item, Verdict]:
    """Return what code found about each candidate of the cells that it has scored by this rubric."""
    return {
        (cell.run_id, number): Verdict(
            Slot("", cell.run_id, number, "", "", flags), {}, flags, (), rubric.composite({}, flags), ""
        )
        for cell in cells
        if cell.checks
        for number, flags in enumerate(flags_by_code(cell.checks, rubric.digest))
    }


def score_again(
    store: RunStore, experiment: Experiment, cells: Sequence[StoredCell], rubric: Rubric
) -> tuple[StoredCell, ...]:
    """Return the cells as this rubric scores them: those that it has not scored are scored from their stored texts.

    Nothing is written.
    """
    waiting = [cell.run_id for cell in cells if cell.awaits_judge(rubric.digest)]
    runs = store.runs_by_id(experiment, waiting)
    found = {run_id: stored_cell(_scored(store, run, rubric)) for run_id, run in runs.items()}
    return tuple(found.get(cell.run_id, cell) for cell in cells)


def write_scores(store: RunStore, experiment: Experiment, rubric: Rubric, now_ms: int) -> int:
    """Bring the stored cells up to date with a rubric of checks that has changed; return how many were.

    Cells are left as they are once judges have scored any by another rubric: their scores are not code's to replace.
    A call that was interrupted is completed by the next.
    """
    if batch_runs(store, experiment):
        return 0
    changed = 0
    with store.session():
        for run in _outdated(store, experiment, rubric):
            scored = _scored(store, run, rubric)
            # In a file of its own: if this is interrupted, the run still has the rubric and the scores of before.
            file = {RUBRIC_FILE: f"rubric-{rubric.digest[:SHORT]}.md"}
            tags = {key: value for key, value in scored.tags.items() if run.tags.get(key) != value} | file
            metrics = {key: value for key, value in scored.metrics.items() if run.metrics.get(key) != value}
            store.extend_run(run, tags, metrics, {tags[RUBRIC_FILE]: rubric.text}, now_ms)
            changed += 1
    return changed


def _outdated(store: RunStore, experiment: Experiment, rubric: Rubric) -> Iterator[StoredRun]:
    for run in store.runs(experiment, {KIND: CELL}):
        if run.tags.get("tipbench.rubric_digest") != rubric.digest:
            yield run


def _scored(store: RunStore, run: StoredRun, rubric: Rubric) -> StoredRun:
    """Return the run as it is when this rubric has scored it."""
    tags = {**run.tags, "tipbench.rubric": rubric.name, "tipbench.rubric_digest": rubric.digest}
    cell = stored_cell(run)
    if cell.failure is not None:
        return run._replace(tags=tags)
    if cell.is_empty:
        return run._replace(tags={**tags, JUDGED_RUBRIC: rubric.digest}, metrics={**run.metrics, **rubric.lowest()})
    written = stored_candidates(store, run)
    checks = [rubric.checked_flags(text, written.format_ok, cell.scenario) for text in written.texts]
    scores = rubric.code_scores(checks)
    tags |= code_tags(rubric.digest, checks)
    described = with_summary(run.tags.get(DESCRIPTION), code_summary(scores, len(checks)))
    if described is not None:
        tags[DESCRIPTION] = described
    return run._replace(tags=tags, metrics={**run.metrics, **scores})
