"""`tipbench decide`: from nothing to a decision between rows, in rounds."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.console import print_answer

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench decide --replay scores.csv\n"
    "  tipbench decide --replay scores.csv --seed 1 --good-enough 0 --claim new --format json\n\n"
    "The CSV file has the columns row, item, score and, optionally, cluster: of a cluster's items, one is drawn.\n\n"
    "Exit status: 0 decided, 1 open, 2 refused."
)
@click.option(
    "--replay", "replayed", type=_FILE, metavar="FILE", required=True, help="Decide from this matrix of scores."
)
@click.option(
    "--claim",
    type=click.Choice(["pool", "new"]),
    default="pool",
    help="Whose answers in this pool are the best, or who is the best on new scenarios.  [default: pool]",
)
@click.option(
    "--good-enough",
    type=click.FloatRange(min=0),
    default=0.15,
    metavar="X",
    help="Stop when picking the leader is expected to lose at most X points; 0: go on to proof.  [default: 0.15]",
)
@click.option("--budget", type=click.IntRange(min=1), metavar="N", help="Stop after N judgements.")
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Shuffle the items.  [default: their order in the file]"
)
@click.option("--scale", metavar="LO,HI", help="Lowest and highest possible score.  [default: those in the file]")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="[default: table]")
def command(replayed: Path, scale: str | None, form: str, **given: Any) -> int:
    """Decide which row is the best with the fewest judgements, in rounds.

    Every row left is judged on the same items. After each round, rows that are shown not to be the best are out and are
    judged no more. The claim holds however often you look.
    """
    from tipbench.bench.decide.replay import replay
    from tipbench.bench.decide.verdict import Verdict, table
    from tipbench.core.untrusted import json_text

    verdict: Verdict = replay(replayed, scale=_scale(scale), **given)
    if form == "json":
        click.echo(json_text(verdict.as_data()))
    else:
        _show(verdict, table(verdict))
    return 0 if verdict.is_decided else 1


def _scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(
            f"--scale {text!r} must be two numbers with a comma between them, such as 2,17"
        ) from None
    if not low < high:
        raise click.UsageError(f"--scale {text!r} must give the lower number first")
    return low, high


def _show(verdict: Any, lines: Any) -> None:
    from tipbench.cli.console import out
    from tipbench.cli.leaderboard import empty_table
    from tipbench.core.untrusted import printable

    print_answer(verdict.says, verdict.next)
    shown = empty_table("")
    for name, right in (("row", False), ("mean", True), ("judged", True), ("state", False)):
        shown.add_column(name, justify="right" if right else "left", overflow="fold")
    for line in lines:
        shown.add_row(*map(printable, line))
    out.print(shown)
    state = verdict.state
    out.print(f"{state.judgements:,} judgements on {state.items} items.", style="dim")
