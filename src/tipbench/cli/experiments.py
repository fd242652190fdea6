"""`tipbench experiments`: what is in the store."""

from typing import Any

import click
from rich.table import Table

from tipbench.bench.compare.snapshot import rubric_of
from tipbench.bench.pipeline import check_own, compare
from tipbench.bench.suites.load import built_in_suites, load_suite
from tipbench.bench.tracking.runs import stored_runs
from tipbench.cli.flags import gather, option_flags
from tipbench.cli.workplace import look_at, note, out, ui_hint, workplace
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
    """List, show, delete and restore experiments. Without a word: list."""
    return ctx.invoke(list_) if ctx.invoked_subcommand is None else None


@command.command("list")
@option_flags("mlflow_url")
@click.option("--all", "everything", is_flag=True, help="Also experiments that no built-in suite's prefix fits.")
def list_(everything: bool = False, **given: Any) -> int:
    """The experiments with their cells: judged, pending, failed."""
    options = gather(given)
    prefixes = tuple(load_suite(name).experiment_prefix for name in built_in_suites())
    with workplace(options.mlflow_url) as work:
        table = Table(title=f"Experiments in {work.store.address}", title_justify="left")
        for name in ("experiment", "created", "cells", "judged", "pending", "failed"):
            table.add_column(name, justify="left" if name in ("experiment", "created") else "right")
        for experiment in work.store.experiments(""):
            if not everything and not experiment.name.startswith(prefixes) and "tipbench.suite" not in experiment.tags:
                continue
            try:
                cells = look_at(work, experiment).cells
            except StoredDataDamaged as error:  # the others are worth a line all the same
                note(f"{printable(experiment.name)} can't be read: {error}")
                continue
            failed = sum(cell.failure is not None for cell in cells)
            pending = sum(cell.pending for cell in cells)
            created = utc_minute(experiment.created_ms, zone=False)
            counts = (len(cells), len(cells) - failed - pending, pending, failed)
            table.add_row(printable(experiment.name), created, *(str(count) for count in counts))
        if table.row_count:
            out.print(table)
        else:
            out.print(f"No experiments yet in {work.store.address}. 'tipbench demo' makes one.", soft_wrap=True)
    return 0


@command.command("show")
@click.argument("name")
@option_flags("mlflow_url")
def show(name: str, **given: Any) -> int:
    """One experiment: its leaderboard, and where to look further."""
    options = gather({**given, "experiment": name})
    with workplace(options.mlflow_url, name) as work:
        experiment = work.store.experiment(name)
        look = look_at(work, experiment)
        from tipbench.cli.leaderboard import show_leaderboard  # brings numpy

        show_leaderboard(compare(look, rubric_of(look)))
        out.print(f"Look at the runs: {ui_hint(work)}", soft_wrap=True)
    return 0


@command.command("delete")
@click.argument("name")
@option_flags("mlflow_url")
@click.option("--yes", is_flag=True, help="Don't ask.")
def delete(name: str, yes: bool, **given: Any) -> int:
    """Delete an experiment, after asking. MLflow keeps it aside: 'restore' brings it back."""
    options = gather({**given, "experiment": name})
    with workplace(options.mlflow_url, name) as work:
        experiment = work.store.experiment(name)
        check_own(work.store, experiment)
        count = len(stored_runs(work.store, experiment))
        question = f"Delete experiment '{printable(name)}' with {count} cells from {work.store.address}?"
        if not yes and not click.confirm(question, default=False):
            out.print("Nothing was deleted.")
            return 0
        work.store.delete_experiment(experiment)
        out.print(f"Deleted. To bring it back: tipbench experiments restore {name}", soft_wrap=True)
    return 0


@command.command("restore")
@click.argument("name")
@option_flags("mlflow_url")
def restore(name: str, **given: Any) -> int:
    """Bring a deleted experiment back."""
    options = gather({**given, "experiment": name})
    with workplace(options.mlflow_url, name) as work:
        work.store.restore_experiment(name)
        out.print(f"'{printable(name)}' is back.")
    return 0
