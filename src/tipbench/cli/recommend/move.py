"""`tipbench recommend move`: states from files to PostgreSQL, or back."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tipbench.cli.console import err, note, out
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.recommender.store.moving import STORES, Watcher, move, open_exclusive

_NAMES = click.Choice(list(STORES))


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend move files postgresql    # to the database in TIPBENCH_POSTGRESQL_URL\n"
    "  tipbench recommend move postgresql files\n\n"
    "Stop the service first. The states at the source remain and are no longer used. If interrupted, run the same "
    "command again to continue."
)
@click.argument("source", type=_NAMES, metavar="SOURCE")
@click.argument("destination", type=_NAMES, metavar="DESTINATION")
def command(source: str, destination: str) -> int:
    """Move all users' states, with their counters and events, from SOURCE to DESTINATION: files or postgresql.

    Each state is written, read back and compared. After that, only the destination can be served from.
    """
    if source == destination:
        raise InvalidInput(f"source and destination are both {source}; name two: {' and '.join(STORES)}")
    settings = Settings()
    with closing(open_exclusive(source, settings)) as left, closing(open_exclusive(destination, settings)) as entered:
        note(f"Moving the states in {left.address} to {entered.address} …")
        with _progress_bar() as show:
            moved = move(left, entered, round(time.time() * 1000), show)
        out.print(
            f"{moved.states} states of {moved.users} users are in {entered.address} now. To serve from there, set "
            f"TIPBENCH_STATE={destination}",
            soft_wrap=True,
        )
    return 0


@contextmanager
def _progress_bar() -> Iterator[Watcher]:
    """Show a bar on a terminal; nothing elsewhere, where the final message is enough."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=None)
        yield lambda doing, done, of: progress.update(task, description=doing, completed=done, total=of)
