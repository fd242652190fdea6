"""`tipbench experiments`: what is in the store."""

from typing import Any

import click
from rich.table import Table

from tipbench.bench.bench import Bench
from tipbench.bench.context import Context
from tipbench.bench.suites.load import built_in_prefixes
from tipbench.cli.console import Notes, bench_of, note, out, ui_hint
from tipbench.cli.flags import gather, option_flags
from tipbench.core.errors import StoredDataDamaged
from tipbench.core.text import utc_minute
from tipbench.core.untrusted import printable


@click.group(
    invoke_without_command=True,
    epilog="Examples:\n\n\b\n  tipbench experiments\n  tipbench experiments list --all\n"
    "  tipbench experiments show tip-bench-first\n  tipbench experiments delete tip-bench-first",
)
@click.pass_context
def command(ctx: click.Context) -> int | None:
    """List, show, delete and restore experiments. Without a subcommand: list."""
    return ctx.invoke(list_) if ctx.invoked_subcommand is None else None


@command.command("list")
@option_flags("mlflow_url")
@click.option(
    "--all", "everything", is_flag=True, help="Also list experiments that don't begin with a built-in suite's prefix."
)
def list_(everything: bool = False, **given: Any) -> int:
    """List experiments with their cells: judged, pending, failed."""
    options = gather(given)
    prefixes = built_in_prefixes()
    with Bench(context=Context(observer=Notes()), mlflow_url=options.mlflow_url) as bench:
        table = Table(title=f"Experiments in {bench.store.address}", title_justify="left")
        for name in ("experiment", "created", "cells", "judged", "pending", "failed"):
            table.add_column(name, justify="left" if name in ("experiment", "created") else "right")
        for experiment in bench.store.experiments(""):
            if not everything and not experiment.name.startswith(prefixes) and "tipbench.suite" not in experiment.tags:
                continue
            try:
                found = bench.count_cells(experiment)
            except StoredDataDamaged as error:  # list the others all the same
                note(f"{printable(experiment.name)} can't be read: {error}")
                continue
            created = utc_minute(experiment.created_ms, zone=False)
            counts = (found.cells, found.judged, found.pending, found.failed)
            table.add_row(printable(experiment.name), created, *(str(count) for count in counts))
        if table.row_count:
            out.print(table)
        else:
            out.print(f"No experiments yet in {bench.store.address}. 'tipbench demo' makes one.", soft_wrap=True)
    return 0


@command.command("show")
@click.argument("name")
@option_flags("mlflow_url")
def show(name: str, **given: Any) -> int:
    """Show an experiment's leaderboard, and where to see its runs."""
    options = gather({**given, "experiment": name})
    with bench_of(options) as bench:
        from tipbench.cli.leaderboard import show_leaderboard  # imports numpy

        show_leaderboard(bench.compare())
        out.print(f"Look at the runs: {ui_hint(bench.store.address)}", soft_wrap=True)
    return 0


@command.command("delete")
@click.argument("name")
@option_flags("mlflow_url")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def delete(name: str, yes: bool, **given: Any) -> int:
    """Delete an experiment, after asking. 'restore' brings it back."""
    options = gather({**given, "experiment": name})
    with bench_of(options) as bench:
        bench.check_own()
        count = bench.count_cells(bench.experiment).cells
        question = f"Delete experiment '{printable(name)}' with {count} cells from {bench.store.address}?"
        if not yes and not click.confirm(question, default=False):
            out.print("Nothing was deleted.")
            return 0
        bench.delete()
        out.print(f"Deleted. To restore it: tipbench experiments restore {name}", soft_wrap=True)
    return 0


@command.command("restore")
@click.argument("name")
@option_flags("mlflow_url")
def restore(name: str, **given: Any) -> int:
    """Restore a deleted experiment."""
    options = gather({**given, "experiment": name})
    with bench_of(options) as bench:
        bench.restore()
        out.print(f"'{printable(name)}' is restored.")
    return 0
