"""`tipbench recommend rewards`: what the served tips earned, beside the leaderboard."""

from typing import Any

import click
from rich.table import Table

from tipbench.bench.compare.leaderboard import row_label
from tipbench.bench.compare.messages import figure
from tipbench.cli.console import FITS_WIDTH, bench_of, out, print_answer
from tipbench.cli.flags import gather, option_flags
from tipbench.cli.leaderboard import empty_table
from tipbench.core.paths import decisions_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.server.views.rewards import Rewards, rewards_of
from tipbench.server.views.rewards_report import (
    COLUMNS,
    FORMATS,
    answer_of,
    caveats,
    headline,
    left_out,
    span,
    texts_of,
)

_NAMES = ("model", "prompt")


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend rewards --experiment tip-bench-first\n"
    "  tipbench recommend rewards --experiment tip-bench-first --format csv > rewards.csv\n"
)
@option_flags("experiment", "mlflow_url")
@click.option("--format", "form", type=click.Choice(["table", *FORMATS]), default="table", help="[default: table]")
@click.option("--verbose", "-v", is_flag=True, help="All columns, all caveats, and what belongs to no row.")
def command(form: str, verbose: bool, **given: Any) -> None:
    """Show which row's tips users respond to best, next to the leaderboard.

    Reads this machine's log of what the recommender served (in TIPBENCH_HOME). A decision counts if its candidate
    names the run that it came from, as the candidates of `tipbench recommend tips` do.
    """
    options = gather(given)
    with bench_of(options) as bench:
        board = bench.compare()
        rewards = rewards_of(board, RewardStatisticsReader(decisions_folder(Settings().home)).read())
        if form == "table":
            _show(rewards, verbose)
        else:
            click.echo(FORMATS[form](rewards))


def _show(rewards: Rewards, verbose: bool) -> None:
    answer = answer_of(rewards)
    print_answer(answer.says, answer.next)
    if rewards.rows:
        out.print(_full_table(rewards) if verbose else _small_table(rewards))
        out.print(printable(headline(rewards)), style="dim", soft_wrap=True)
    for line in caveats(rewards) if verbose else caveats(rewards)[:1]:
        out.print(printable(line), style="yellow", soft_wrap=not FITS_WIDTH)
    if verbose or not rewards.rows:
        for line in left_out(rewards):
            out.print(printable(line), soft_wrap=True)
    else:
        out.print("More: --verbose (all columns, caveats, what is not counted here).", style="dim")


def _small_table(rewards: Rewards) -> Table:
    """Four columns that fit 80 characters."""
    table = empty_table("")
    table.add_column("row", overflow="fold", ratio=1)
    for name in ("served", "rewarded", "mean reward, 95 %"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rewards.rows:
        reward = f"{figure(row.mean)} ({span(row.interval)})" if row.interval else figure(row.mean)
        table.add_row(printable(row_label(rewards.board, row.row)), f"{row.served:,}", f"{row.rewarded:,}", reward)
    return table


def _full_table(rewards: Rewards) -> Table:
    table = empty_table(f"What users did with {printable(rewards.board.experiment)}")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in _NAMES else "right", overflow="fold")
    for row in rewards.rows:
        table.add_row(*(printable(text) for text in texts_of(rewards, row)))
    return table
