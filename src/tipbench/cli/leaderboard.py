"""The leaderboard on a terminal: intervals as small bars, and as many columns as fit."""

from collections.abc import Callable
from typing import NamedTuple

import click
from rich import box
from rich.table import Table
from rich.text import Text

from tipbench.bench.compare.answer import answer_of
from tipbench.bench.compare.leaderboard import Leaderboard, prompt_label, row_label
from tipbench.bench.compare.leaderboard_row import MAX_LEVELS, LeaderboardRow
from tipbench.bench.compare.messages import (
    FORMATS,
    effect_sentences,
    figure,
    headline,
    hidden_provisional,
    mark,
    percent,
    range_text,
    verdict,
    warnings,
)
from tipbench.cli.console import out, print_answer
from tipbench.core.errors import InvalidInput
from tipbench.core.text import size
from tipbench.core.untrusted import printable
from tipbench.statistics.interval import Interval

_BAR = 22  # characters
_SMALL_BAR = 16


class Column(NamedTuple):
    """A column of the table; columns of low priority are dropped first when the terminal is too narrow."""

    title: str
    priority: int
    value: Callable[[LeaderboardRow], str | Text]
    right: bool = True


def show_leaderboard(board: Leaderboard, form: str = "table", verbose: bool = False) -> None:
    """Print the answer and a small table; with `verbose`, all columns and what the scores say besides."""
    if form != "table":
        click.echo(FORMATS[form](board))
        return
    show_answer(board)
    if verbose:
        _show_everything(board)
    elif board.rows:
        out.print(_small_table(board))
        if said := hidden_provisional(board):
            out.print(printable(said), soft_wrap=True)
        out.print("More: --verbose (criteria, effects, caveats), --format html (with the texts).", style="dim")


def show_answer(board: Leaderboard) -> None:
    answer = answer_of(board)
    print_answer(answer.says, answer.next)


def _small_table(board: Leaderboard) -> Table:
    """Four columns that fit 80 characters."""
    scale = board.scales["composite"]
    table = empty_table("")
    table.add_column("variant", overflow="fold", ratio=1)
    table.add_column(f"composite, {scale.low:g} to {scale.high:g}", no_wrap=True)
    table.add_column("judged", justify="right", no_wrap=True)
    table.add_column("s/cell", justify="right", no_wrap=True)
    for row in board.rows:
        score = Text(f"{figure(row.composite):>5} ").append_text(interval_bar(row, scale, _SMALL_BAR))
        judged = f"{row.judged} of {row.cells + row.missing}"
        may_be_best = not board.is_behind(row)
        table.add_row(
            printable(row_label(board, row)),
            score,
            judged,
            figure(row.cost.seconds, 1),
            style="" if may_be_best else "dim",
        )
    return table


def _show_everything(board: Leaderboard) -> None:
    out.print(printable(headline(board)), style="bold yellow" if board.provisional else "bold", soft_wrap=True)
    if board.rows:
        _print_fitting(board)
    for line in verdict(board):
        out.print(printable(line), style="bold" if board.comparison.separable else "yellow", soft_wrap=True)
    for line in effect_sentences(board):
        out.print(printable(line), soft_wrap=True)
    for warning in warnings(board):
        out.print(printable(warning), style="yellow", soft_wrap=True)


def check_factor(board: Leaderboard, factor: str) -> None:
    known = sorted({name for row in board.rows for name in row.slices})
    levels = len(board.grid.levels.get(factor, ()))
    if levels > MAX_LEVELS:
        raise InvalidInput(f"--by '{factor}' has {levels} levels, too many for a table; use --scores FILE.csv instead")
    if factor not in known:
        has = ", ".join(known) or "none with scores"
        raise InvalidInput(f"--by '{factor}' names no factor of '{board.experiment}', which has {has}")


def show_slices(board: Leaderboard, factor: str) -> None:
    """Print the composite of each row on each level of a factor."""
    levels = sorted({level for row in board.rows for level in row.slices.get(factor, {})})
    table = empty_table(f"Composite by {printable(factor)}")
    for name in ("", "model", "prompt"):
        table.add_column(name, overflow="fold")
    for level in levels:
        table.add_column(printable(level), justify="right")
    for row in board.rows:
        slices = row.slices.get(factor, {})
        means = [figure(slices[level].mean if level in slices else None) for level in levels]
        table.add_row(mark(row), printable(row.model), printable(prompt_label(board, row)), *means)
    out.print(table)


def _print_fitting(board: Leaderboard) -> None:
    """Print the table with as many columns as fit; the narrowest if none fits."""
    everything = table = _table(board, 0)
    for min_priority in range(1, 6):
        if _width(table) <= out.width:
            break
        table = _table(board, min_priority)
    if table is not everything:
        table.caption = f"{_width(everything)} columns show everything, and so does --format html."
        table.caption_justify = "left"
    out.print(table)


def _width(table: Table) -> int:
    return out.measure(table, options=out.options.update(max_width=10_000)).maximum


def _table(board: Leaderboard, min_priority: int) -> Table:
    table = empty_table(f"Leaderboard of {printable(board.experiment)}")
    columns = [column for column in _columns(board) if column.priority >= min_priority]
    for column in columns:
        folds = min_priority > 0 and column.title in ("model", "prompt")
        table.add_column(column.title, justify="right" if column.right else "left", overflow="fold", no_wrap=not folds)
    for row in board.rows:
        table.add_row(*(column.value(row) for column in columns), style="dim" if board.is_behind(row) else "")
    return table


def _columns(board: Leaderboard) -> list[Column]:
    scale = board.scales["composite"]
    criteria = [name for name in board.scores if name != "composite" and name not in board.flags]
    return [
        Column("top", 5, lambda one: Text(mark(one), style="green"), right=False),
        Column("model", 5, lambda one: printable(one.model), right=False),
        Column("prompt", 5, lambda one: printable(prompt_label(board, one)), right=False),
        Column("composite", 5, lambda one: Text(figure(one.composite), style="bold")),
        Column(f"{scale.low:g} … 95 % … {scale.high:g}", 4, lambda one: interval_bar(one, scale), right=False),
        Column("from – to", 3, lambda one: _range(one.intervals.get("composite"))),
        Column("best?", 5, lambda one: percent(one.rank.p_best if one.rank else None)),
        *(_mean_column(name, 1) for name in criteria),
        *(_mean_column(name, 0) for name in board.flags),
        *([Column("if worst – best", 3, lambda one: _range(one.extremes))] if board.gaps else []),
        Column("judged·\npending·\nfailed", 2, lambda one: f"{one.judged}·{one.pending}·{one.failed}"),
        Column("empty", 0, lambda one: str(one.empty)),
        Column("texts", 0, lambda one: figure(one.candidates, 1)),
        Column("s/cell", 1, lambda one: figure(one.cost.seconds)),
        Column("tok/s", 0, lambda one: figure(one.cost.tokens_per_s, 1)),
        Column("size", 0, lambda one: size(one.cost.model_bytes)),
        Column("front", 0, lambda one: "◆" if one.on_front else ""),
    ]


def _mean_column(name: str, priority: int) -> Column:
    return Column(name.replace("_", " "), priority, lambda one: figure(one.means.get(name)))


def interval_bar(row: LeaderboardRow, scale: Interval, width: int = _BAR) -> Text:
    """Draw the composite's scale as a line, its interval as a thick line, and the mean as a cross."""
    interval, mean = row.intervals.get("composite"), row.composite
    if interval is None or mean is None:
        return Text("─" * width, style="dim")

    def at(value: float) -> int:
        return min(width - 1, max(0, int((value - scale.low) / (scale.high - scale.low) * width)))

    low, middle, high = at(interval.low), at(mean), at(interval.high)
    bar = Text("─" * low, style="dim")
    bar.append("━" * (middle - low), style="cyan")
    bar.append("╋", style="bold cyan")
    bar.append("━" * (high - middle), style="cyan")
    bar.append("─" * (width - 1 - high), style="dim")
    return bar


def _range(interval: Interval | None) -> str:
    return range_text(*interval) if interval else "–"


def empty_table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
