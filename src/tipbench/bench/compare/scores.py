"""Every single score of an experiment, with where it came from: for whoever wants to analyse it elsewhere.

Three kinds of lines: `judge`, what a judge gave one candidate; `empty`, an answer without a usable candidate, which
scores the minimum; `cell`, the scores of a cell as they count on the leaderboard.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipbench.bench.compare.rows import cell_scores
from tipbench.bench.compare.snapshot import Snapshot
from tipbench.bench.records import StoredCell
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import applied_batch, batch_runs
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import stored_candidates, stored_cell, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, MissingExtra
from tipbench.core.files import read_start, write_user_file
from tipbench.core.untrusted import csv_text, json_text

if TYPE_CHECKING:
    from pandas import DataFrame

_WRITERS: Mapping[str, Callable[[list[dict[str, Any]]], str]] = {".csv": csv_text, ".json": json_text}


def all_scores(store: RunStore, snapshot: Snapshot, rubric: Rubric) -> list[dict[str, Any]]:
    """The lines of all kinds."""
    return [*_by_judges(store, snapshot.experiment), *_of_cells(snapshot, rubric)]


def _of_cells(snapshot: Snapshot, rubric: Rubric) -> list[dict[str, Any]]:
    empty, cells = [], []
    scores = cell_scores(snapshot.cells, rubric)
    for cell in sorted(snapshot.cells, key=lambda one: (one.model, one.prompt, one.scenario, one.repeat, one.run_id)):
        if cell.run_id not in scores:
            continue
        line = {**_where(cell), "rubric_digest": rubric.digest, **scores[cell.run_id]}
        if cell.is_empty:
            empty.append({**line, "kind": "empty"})
        cells.append({**line, "kind": "cell"})
    return [*empty, *cells]


def _by_judges(store: RunStore, experiment: Experiment) -> list[dict[str, Any]]:
    """One line a judged candidate and judge."""
    runs = {run.run_id: run for run in stored_runs(store, experiment)}
    texts: dict[str, tuple[str, ...]] = {}
    rows = []
    for batch_run in batch_runs(store, experiment):
        batch = applied_batch(store, batch_run)
        for verdict in batch.verdicts if batch else ():
            run = runs.get(verdict.slot.run_id)
            if batch is None or run is None or verdict.slot.kind != "candidate":
                continue
            if run.run_id not in texts:
                texts[run.run_id] = stored_candidates(store, run).texts
            cell = stored_cell(run)
            rows.append(
                {
                    **_where(cell),
                    "judge": batch.batch.judge,
                    "provisional": batch.batch.provisional,
                    "counted": batch.counted,
                    "batch": batch.batch.id,
                    "rubric_digest": batch.batch.rubric_digest,
                    "candidate": verdict.slot.candidate,
                    **verdict.scores,
                    **{name: int(value) for name, value in verdict.flags.items()},
                    "composite": verdict.composite,
                    "note": verdict.note,
                    "text": texts[run.run_id][verdict.slot.candidate],
                    "kind": "judge",
                }
            )
    return rows


def write_scores(path: Path, rows: list[dict[str, Any]]) -> None:
    """As CSV or JSON, by the file's ending."""
    check_scores_file(path)
    write_user_file(path, _WRITERS[path.suffix](rows))


def check_scores_file(path: Path) -> None:
    if path.suffix not in _WRITERS:
        raise InvalidInput(f"scores can be written as .csv or .json; {path} is neither")
    if path.is_file() and b'"tipbench-judge/' in read_start(path):
        raise InvalidInput(f"{path} is a judge file and may hold somebody's scores; name another file")


def _where(cell: StoredCell) -> dict[str, Any]:
    return {
        "run_id": cell.run_id,
        "model": cell.model,
        "prompt": cell.prompt,
        "scenario": cell.scenario,
        **{f"factor.{name}": level for name, level in sorted(cell.factors.items())},
        "repeat": cell.repeat,
        **{f"setting.{name}": value for name, value in cell.settings.items()},
    }


# Tables for pandas, which is there where MLflow is installed.


def frame_of(lines: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """A line of the table for each mapping. Raises MissingExtra where pandas is not installed."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        raise MissingExtra("tables need pandas, which is not installed: pip install pandas") from None
    return DataFrame(lines)
