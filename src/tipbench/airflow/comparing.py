"""The task `compare`: logs the leaderboard, and which cells are missing from it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tipbench.airflow.planning import TaskLog, planned_request, shared_bench
from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.plan import make_plan
from tipbench.bench.compare.snapshot import Snapshot
from tipbench.bench.records import ModelInfo
from tipbench.core.settings import Settings


def compare_all(planned: Mapping[str, Any], settings: Settings, say: Callable[[str], None]) -> dict[str, Any]:
    from tipbench.bench.compare.leaderboard import leaderboard_of, row_label
    from tipbench.bench.compare.messages import as_markdown

    options, suite = planned_request(planned)
    with shared_bench(options, settings, TaskLog(say)) as bench:
        snapshot = bench.snapshot()
        board = leaderboard_of(snapshot, suite.rubric)
        bench.publish_answer(snapshot, board)
    say(as_markdown(board))
    models = [ModelInfo(**one) for one in planned["infos"]]
    missing = _missing(models, Grid(options, suite, models), snapshot)
    if missing:
        say(f"CELLS ARE MISSING: {', '.join(f'{count} of {model}' for model, count in missing.items())}.")
    in_short = " ".join(board.answer.sentences)
    if missing:
        in_short = f"{sum(missing.values())} cells are missing ({', '.join(missing)}). {in_short}"
    return {
        "in_short": in_short,
        "experiment": options.experiment,
        "top": [row_label(board, row) for row in board.top],
        "missing": missing,
    }


def _missing(models: Sequence[ModelInfo], grid: Grid, snapshot: Snapshot) -> dict[str, int]:
    """Count the planned cells without an answer in MLflow, by model, whatever state its task is in."""
    plan = make_plan(models, grid, snapshot.cells, retry_failed=True)
    return dict(Counter(cell.model.name for cell in plan.to_do))
