"""Every single score of an experiment with its origin, for analysis elsewhere.

Three kinds of rows: `judge`, what a judge gave one candidate; `empty`, an answer without a usable candidate, which
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
    """Return the rows of all three kinds."""
    return [*_judge_rows(store, snapshot.experiment), *_cell_rows(snapshot, rubric)]


def _cell_rows(snapshot: Snapshot, rubric: Rubric) -> list[dict[str, Any]]:
    empty, cells = [], []
    scores = cell_scores(snapshot.cells, rubric)
    for cell in sorted(snapshot.cells, key=lambda one: (one.model, one.prompt, one.scenario, one.repeat, one.run_id)):
        if cell.run_id not in scores:
            continue
        line = {**_origin(cell), "rubric_digest": rubric.digest, **scores[cell.run_id]}
        if cell.is_empty:
            empty.append({**line, "kind": "empty"})
        cells.append({**line, "kind": "cell"})
    return [*empty, *cells]


def _judge_rows(store: RunStore, experiment: Experiment) -> list[dict[str, Any]]:
    """Return one row per judged candidate and judge."""
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
                    **_origin(cell),
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
    """Write the rows as CSV or JSON, by the file's suffix."""
    check_scores_file(path)
    write_user_file(path, _WRITERS[path.suffix](rows))


def check_scores_file(path: Path) -> None:
    if path.suffix not in _WRITERS:
        raise InvalidInput(f"scores can be written as .csv or .json, but {path} is neither")
    if path.is_file() and b'"tipbench-judge/' in read_start(path):
        raise InvalidInput(f"{path} is a judge file and may contain somebody's scores; choose another file")


def _origin(cell: StoredCell) -> dict[str, Any]:
    return {
        "run_id": cell.run_id,
        "model": cell.model,
        "prompt": cell.prompt,
        "scenario": cell.scenario,
        **{f"factor.{name}": level for name, level in sorted(cell.factors.items())},
        "repeat": cell.repeat,
        **{f"setting.{name}": value for name, value in cell.settings.items()},
    }


# Tables as pandas DataFrames; pandas comes with MLflow.


def frame_of(lines: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """Return a DataFrame with one row per mapping; raise MissingExtra if pandas is not installed."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        raise MissingExtra("tables need pandas, which is not installed: pip install pandas") from None
    return DataFrame(lines)
