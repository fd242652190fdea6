"""`tipbench compare`: phase C."""

from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from tipbench.cli.flags import gather, option_flags
from tipbench.cli.workplace import chosen_rubric, note, out, workplace
from tipbench.compare.leaderboard import Leaderboard
from tipbench.compare.report import FORMATS, figure, headline, prompt_label, ranked, warnings
from tipbench.compare.scores import check_scores_file, single_scores, write_scores
from tipbench.pipeline import compare
from tipbench.untrusted import printable


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench compare --experiment tip-bench-first\n"
    "  tipbench compare --experiment tip-bench-first --format markdown > leaderboard.md\n"
    "  tipbench compare --experiment tip-bench-first --scores scores.csv"
)
@option_flags("experiment", "mlflow_url")
@click.option("--suite", help="Use this suite's rubric instead of the one kept with the experiment.")
@click.option("--format", "form", type=click.Choice(["table", *FORMATS]), default="table", help="[default: table]")
@click.option(
    "--scores",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write every single score to this .csv or .json file.",
)
def command(suite: str | None, form: str, scores: Path | None, **given: Any) -> int:
    """Phase C: the leaderboard per (model, prompt), best composite first.

    Cells that failed or still wait for a judge are counted beside it, never dropped. Provisional scores are shown
    only while no counted judge has scored anything, and are marked.
    """
    options = gather(given)
    if scores:
        check_scores_file(scores)
    with workplace(options.mlflow_url, options.experiment) as work:
        experiment = work.store.experiment(options.experiment)
        board = compare(work.store, experiment, chosen_rubric(work, experiment, suite))
        show_leaderboard(board, form)
        if scores:
            rows = single_scores(work.store, experiment)
            write_scores(scores, rows)
            note(f"{len(rows)} single scores written to {scores}")
    return 0


def show_leaderboard(board: Leaderboard, form: str = "table") -> None:
    if form != "table":
        click.echo(FORMATS[form](board))
        return
    out.print(headline(board), style="bold yellow" if board.provisional else "bold", soft_wrap=True)
    full = _table(board, wide=True)
    needed = out.measure(full, options=out.options.update(max_width=10_000)).maximum
    out.print(full if needed <= out.width else _table(board, wide=False))
    for warning in warnings(board):
        out.print(warning, style="yellow", soft_wrap=True)


def _table(board: Leaderboard, wide: bool) -> Table:
    flags = () if wide else board.flags
    names = ["composite", *(name for name in board.scores if name != "composite" and name not in flags)]
    table = Table(
        title=f"Leaderboard of {printable(board.experiment)}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        caption=None if wide else "A wider terminal, or --format markdown, shows flags and times too.",
        caption_justify="left",
    )
    table.add_column("#", justify="right")
    table.add_column("model", overflow="fold", no_wrap=wide)
    table.add_column("prompt", overflow="fold", no_wrap=wide)
    for name in names:
        words = name.split("_")
        narrowest = max(len(word) for word in words) if wide else 5
        table.add_column(" ".join(words), justify="right", overflow="fold", min_width=max(5, narrowest))
    table.add_column("judged · pending · failed", justify="right", overflow="fold", min_width=9)
    if wide:
        for name in ("empty", "texts/cell", "s/cell"):
            table.add_column(name, justify="right", no_wrap=True)
    for rank, standing in ranked(board):
        figures = [figure(standing.means.get(name)) for name in names]
        table.add_row(
            str(rank) if rank else "–",
            printable(standing.model),
            printable(prompt_label(board, standing)),
            Text(figures[0], style="bold"),
            *figures[1:],
            f"{standing.judged} · {standing.pending} · {standing.failed}",
            *([str(standing.empty), figure(standing.candidates), figure(standing.wall_s)] if wide else []),
        )
    return table
