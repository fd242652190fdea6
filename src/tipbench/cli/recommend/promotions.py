"""`tipbench recommend promotions`: which policy is live, and how it came to be."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click
from rich.table import Table

from tipbench.cli.console import out
from tipbench.cli.leaderboard import empty_table
from tipbench.core.errors import InvalidInput, StateError
from tipbench.core.settings import Settings
from tipbench.core.text import utc_minute
from tipbench.core.untrusted import json_text, printable
from tipbench.recommender.promotion.evidence import changed_since
from tipbench.recommender.promotion.gate_records import gate_records
from tipbench.recommender.promotion.interface import Act, live_history
from tipbench.recommender.store.moving import open_store


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend promotions\n"
    "  tipbench recommend promotions --format json > promotions.json\n"
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="[default: table]")
def command(form: str) -> None:
    """Show which policy is live, and every promotion and rollback with its gate."""
    settings = Settings()
    with closing(open_store(settings)) as store:
        acts = store.promotions.history()
        live = live_history(acts, store.promotions.address)[-1]
        changes = changed_since(store)
    if form == "json":
        click.echo(json_text({"live": live, "acts": [act.model_dump(by_alias=True) for act in acts]}))
        return
    since = f" since {_time(acts[-1])}" if acts else " by default: nothing was promoted yet"
    out.print(printable(f"{live} is live{since}."), style="bold", soft_wrap=True)
    for change in changes:
        out.print(printable(f"It is not what was promoted: {change}."), style="yellow", soft_wrap=True)
    if acts:
        out.print(_table(acts, settings.home))


def _table(acts: Sequence[Act], home: Path) -> Table:
    """Return the table of promotions and rollbacks, newest first."""
    table = empty_table("Promotions")
    for name in ("when", "act", "from", "to", "gate", "gain at least", "replay"):
        table.add_column(name, overflow="fold")
    for act in reversed(acts):
        texts = (_time(act), act.act, act.left, act.to, act.gate or "–", _gain(act, home), act.replay or "–")
        table.add_row(*map(printable, texts))
    return table


def _gain(act: Act, home: Path) -> str:
    if act.gate is None:
        return "–"
    try:
        return f"{gate_records(home).read(act.gate).verdict.pooled.lower_bound:+.4f}"
    except StateError:
        return "the record was changed"
    except InvalidInput:
        return "the record is not here"


def _time(act: Act) -> str:
    return utc_minute(act.at_ms)
