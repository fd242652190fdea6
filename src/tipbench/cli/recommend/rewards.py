"""`tipbench recommend rewards`: what the served tips earned, beside the leaderboard."""

from typing import Any

import click

from tipbench.cli.console import bench_of, out
from tipbench.cli.flags import gather, option_flags
from tipbench.cli.leaderboard import empty_table
from tipbench.core.paths import decisions_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.server.views.rewards import Rewards, rewards_of
from tipbench.server.views.rewards_report import COLUMNS, FORMATS, caveats, headline, left_out, texts_of

_NAMES = ("model", "prompt")


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend rewards --experiment tip-bench-first\n"
    "  tipbench recommend rewards --experiment tip-bench-first --format csv > rewards.csv\n"
)
@option_flags("experiment", "mlflow_url")
@click.option("--format", "form", type=click.Choice(["table", *FORMATS]), default="table", help="[default: table]")
def command(form: str, **given: Any) -> None:
    """What the served tips earned, by (model, prompt), beside the leaderboard.

    Read from the log of what the recommender of this machine served (in TIPBENCH_HOME), as far as candidates named the
    run that they came from; `tipbench recommend tips` writes such candidates.
    """
    options = gather(given)
    with bench_of(options) as bench:
        board = bench.compare()
        rewards = rewards_of(board, RewardStatisticsReader(decisions_folder(Settings().home)).read())
        if form == "table":
            _show(rewards)
        else:
            click.echo(FORMATS[form](rewards))


def _show(rewards: Rewards) -> None:
    out.print(printable(headline(rewards)), style="bold", soft_wrap=True)
    if rewards.rows:
        table = empty_table(f"What users did with {printable(rewards.board.experiment)}")
        for name in COLUMNS:
            table.add_column(name, justify="left" if name in _NAMES else "right", overflow="fold")
        for row in rewards.rows:
            table.add_row(*(printable(text) for text in texts_of(rewards, row)))
        out.print(table)
    for line in caveats(rewards):
        out.print(printable(line), style="yellow", soft_wrap=True)
    for line in left_out(rewards):
        out.print(printable(line), soft_wrap=True)
