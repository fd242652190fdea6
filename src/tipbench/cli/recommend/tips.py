"""`tipbench recommend tips`: tips of the leading rows as candidates."""

from pathlib import Path
from typing import Any

import click

from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard_of, row_label
from tipbench.bench.judge.export import suite_here
from tipbench.bench.suites.load import categories_of
from tipbench.cli.console import bench_of, note
from tipbench.cli.flags import gather, option_flags
from tipbench.core.text import counted
from tipbench.core.untrusted import json_text, printable
from tipbench.recommender.records import MOST_CANDIDATES
from tipbench.server.views.tips import (
    GENERAL,
    Tips,
    best_row_indices,
    good_tips,
    load_categories,
    tips_of,
    with_categories,
)


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend tips --experiment tip-bench-first > tips.json\n"
    "  tipbench recommend tips --experiment tip-bench-first --top 3 --category time_slot > tips.json\n"
    "  tipbench recommend tips --experiment tip-bench-first --model qwen2.5:1.5b --prompt v2-mentor > tips.json\n"
)
@option_flags("experiment", "mlflow_url")
@click.option("--top", type=click.IntRange(min=1), default=1, metavar="N", help="Take the N best rows.  [default: 1]")
@click.option("--model", metavar="NAME", help="Only rows of this model.")
@click.option("--prompt", metavar="VERSION", help="Only rows of this prompt.")
@click.option(
    "--category",
    metavar="FACTOR",
    help="Use a factor of the suite as a tip's category, or 'scenario'.  [default: by --categories, if there are any, "
    "else the factor that groups the suite's scenarios, else the scenario]",
)
@click.option(
    "--categories",
    "words_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="YAML file of your app's categories, each with words that tell a tip's category.  "
    "[default: categories.yaml of the experiment's suite, if it has one]",
)
@click.option(
    "--min-composite",
    type=float,
    metavar="X",
    help="Leave out tips with a lower composite.  [default: the middle of its scale]",
)
def command(
    top: int,
    model: str | None,
    prompt: str | None,
    category: str | None,
    words_file: Path | None,
    min_composite: float | None,
    **given: Any,
) -> None:
    """Write the tips of the leaderboard's leading (model, prompt) as candidates in JSON.

    A list of {"candidate": …, "text": …}. POST /score takes the candidates as they are; the texts are for the app to
    show. Each candidate says how it was judged, and names the MLflow run that it came from, so that `tipbench recommend
    rewards` can report what users did with it. Tips that are longer than the rubric allows are left out. How sure it is
    that the row leads is said on stderr.
    """
    options = gather(given)
    with bench_of(options) as bench:
        snapshot = bench.snapshot()
        rubric = bench.rubric_for(snapshot)
        board = leaderboard_of(snapshot, rubric)
        rows = best_row_indices(board, top, model, prompt)
        tips = good_tips(tips_of(bench.store, bench.experiment, board, rows, category), rubric, min_composite)
        settings = bench.context.settings
        suite = suite_here(bench.experiment, settings)
    words = words_file or (categories_of(suite, settings) if suite else None)
    if category is None and words:
        tips = with_categories(tips, load_categories(words))
    click.echo(
        json_text([{"candidate": tip.candidate.model_dump(exclude_none=True), "text": tip.text} for tip in tips.tips])
    )
    for line in _notes(board, tips):
        note(printable(line))


def _notes(board: Leaderboard, tips: Tips) -> list[str]:
    """Say which rows were taken and how sure it is that they lead, then what is left out."""
    rows = ", ".join(row_label(board, row) for row in tips.rows)
    notes = [f"Took {counted(len(tips.tips), 'tip')} of {rows}. {board.answer.says}"]
    if tips.left_out:
        notes.append(f"Left out: {tips.left_out}.")
    if tips.unjudged:
        notes.append(f"Not judged, but taken: {counted(tips.unjudged, 'tip')}.")
    general = sum(tip.candidate.category == GENERAL for tip in tips.tips)
    if general:
        notes.append(f"No word tells the category of {counted(general, 'tip')}; it is '{GENERAL}'.")
    if len(tips.tips) > MOST_CANDIDATES:
        notes.append(f"A request takes up to {MOST_CANDIDATES} candidates; send a selection of these.")
    return notes
