"""`tipbench recommend tips`: the bench's best tips as candidates."""

from typing import Any

import click

from tipbench.bench.compare.leaderboard import Leaderboard, row_label
from tipbench.cli.console import bench_of, note
from tipbench.cli.flags import gather, option_flags
from tipbench.core.untrusted import json_text, printable
from tipbench.recommender.records import MOST_CANDIDATES
from tipbench.server.views.tips import Tips, best_row_indices, tips_of


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend tips --experiment tip-bench-first > tips.json\n"
    "  tipbench recommend tips --experiment tip-bench-first --top 3 --category time_slot > tips.json\n"
    "  tipbench recommend tips --experiment tip-bench-first --model qwen2.5:1.5b --prompt v2-mentor > tips.json\n"
)
@option_flags("experiment", "mlflow_url")
@click.option(
    "--top", type=click.IntRange(min=1), default=1, metavar="N", help="How many rows, the best first.  [default: 1]"
)
@click.option("--model", metavar="NAME", help="Only rows of this model.")
@click.option("--prompt", metavar="VERSION", help="Only rows of this prompt.")
@click.option(
    "--category",
    metavar="FACTOR",
    help="What a tip's category is: a factor of the suite, or 'scenario'.  "
    "[default: what its scenarios belong together by, else the scenario]",
)
def command(top: int, model: str | None, prompt: str | None, category: str | None, **given: Any) -> None:
    """The tips of the leaderboard's best (model, prompt), as candidates in JSON.

    A list of {"candidate": …, "text": …}. POST /score takes the candidates as they are; the texts are for the app to
    show. Each candidate names the MLflow run that it came from, so that `tipbench recommend rewards` can tell what
    became of it.
    """
    options = gather(given)
    with bench_of(options) as bench:
        board = bench.compare()
        tips = tips_of(bench.store, bench.experiment, board, best_row_indices(board, top, model, prompt), category)
    click.echo(
        json_text([{"candidate": tip.candidate.model_dump(exclude_none=True), "text": tip.text} for tip in tips.tips])
    )
    for line in _notes(board, tips):
        note(printable(line))


def _notes(board: Leaderboard, tips: Tips) -> list[str]:
    rows = ", ".join(row_label(board, row) for row in tips.rows)
    notes = [f"{len(tips.tips)} tips of {rows}; left out: {tips.failed} failed cells, {tips.empty} empty ones."]
    notes.append(board.answer.says)
    if len(tips.tips) > MOST_CANDIDATES:
        notes.append(f"A request takes up to {MOST_CANDIDATES} candidates; send a selection of these.")
    return notes
