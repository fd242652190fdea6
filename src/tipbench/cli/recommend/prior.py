"""`tipbench recommend prior`: population priors, fitted to the decision log."""

from contextlib import closing
from pathlib import Path

import click

from tipbench.cli.console import out
from tipbench.cli.flags import log_flag
from tipbench.cli.leaderboard import empty_table
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import decisions_folder
from tipbench.core.settings import Settings
from tipbench.core.text import counted, utc_minute
from tipbench.core.untrusted import json_text, printable
from tipbench.recommender.policies.catalog import prior_of
from tipbench.recommender.prior.interface import PriorRecord, load_priors
from tipbench.recommender.promotion.interface import live_history
from tipbench.recommender.store.moving import open_store

_FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="[default: table]"
)


@click.group(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend prior fit\n"
    "  tipbench recommend prior list\n"
    "  tipbench recommend prior show 0c3f1a9e5b7d2468\n"
)
def command() -> None:
    """Learn from all users how a new user should be served: a population prior for ucb/v3 and egreedy/v3."""


@command.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend prior fit\n"
    "  tipbench recommend prior fit --log backup/decisions --min-users 30\n"
)
@log_flag
@click.option(
    "--min-users",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Refuse a log with rewards of fewer users.",
)
def fit(log: Path | None, min_users: int) -> None:
    """Fit a prior to the decision log, and store it where the users' states are.

    Nothing is served with it until a policy with it is promoted. The same log gives the same prior. A user who was
    reset is in it with nothing from before the reset.
    """
    from tipbench.recommender.prior.fit import fit_prior

    settings = Settings()
    if log and not log.is_dir():
        raise InvalidInput(f"--log {log} is not a folder; name the one that holds the log's .jsonl files")
    content = fit_prior(log or decisions_folder(settings.home), min_users)
    with closing(open_store(settings)) as store:
        record = store.priors.read(store.priors.put(content))
    out.print(f"Prior {record.id} is fitted to {_basis(record)}.", style="bold", soft_wrap=True)
    out.print(
        f"Next: does it serve better than what is live? tipbench sim gate --candidate ucb/v3@{record.id}",
        soft_wrap=True,
    )


@command.command(name="list", epilog="Examples:\n\n\b\n  tipbench recommend prior list\n")
@_FORMAT
def list_priors(form: str) -> None:
    """List all priors, those of the newest decisions first."""
    with closing(open_store(Settings())) as store:
        live = prior_of(live_history(store.promotions.history(), store.promotions.address)[-1])
        records, problems = load_priors(store.priors)
    if form == "json":
        rows = [{**record.content, "id": record.id, "live": record.id == live} for record in records]
        click.echo(json_text({"live": live, "priors": rows, "problems": problems}))
        return
    in_use = f"prior {live} is live" if live else "none is live"
    out.print(f"{counted(len(records), 'prior')}; {in_use}.", style="bold", soft_wrap=True)
    for problem in problems:
        out.print(printable(problem), style="yellow", soft_wrap=True)
    if records:
        table = empty_table("")
        for name in ("prior", "users", "rewards", "tips", "decisions until", "live"):
            table.add_column(name, overflow="fold")
        for record in records:
            until, is_live = utc_minute(record.last_ms), "yes" if record.id == live else ""
            numbers = (f"{number:,}" for number in (record.users, record.rewards, len(record.tips)))
            table.add_row(record.id, *numbers, until, is_live)
        out.print(table)


@command.command(epilog="Examples:\n\n\b\n  tipbench recommend prior show 0c3f1a9e5b7d2468\n")
@click.argument("prior")
@_FORMAT
def show(prior: str, form: str) -> None:
    """Show what a prior says about users, and check that it is as it was stored."""
    with closing(open_store(Settings())) as store:
        record = store.priors.read(prior)
    if form == "json":
        click.echo(json_text({"id": record.id, **record.content}))
        return
    out.print(f"Prior {record.id} is fitted to {_basis(record)}.", style="bold", soft_wrap=True)
    table = empty_table("Coefficients among users")
    table.add_column("feature")
    for name in ("mean", "standard deviation"):
        table.add_column(name, justify="right")
    for name, deviation in record.deviations.items():
        table.add_row(name, f"{record.mean[name]:+.3f}", f"{deviation:.3f}")
    table.add_row("each category", "+0.000", f"{record.intercept_deviation:.3f}")
    out.print(table)
    out.print(f"Standard deviation of a reward for which all of it is known: {record.noise**0.5:.3f}.", soft_wrap=True)


def _basis(record: PriorRecord) -> str:
    return (
        f"{record.rewards:,} rewards of {counted(record.users, 'user')} for {counted(len(record.tips), 'tip')}, "
        f"decided from {utc_minute(record.first_ms)} to {utc_minute(record.last_ms)}"
    )
