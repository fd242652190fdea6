"""`tipbench sync`: deliver what was generated while MLflow was away."""

import click

from tipbench.bench.bench import Bench
from tipbench.cli.console import note, out
from tipbench.core.text import counted


@click.command(epilog="Example:\n\n\b\n  tipbench sync")
def command() -> int:
    """Deliver what was generated while MLflow was unreachable, each collection to its own store.

    Exit status: 0 everything is delivered, 1 something could not be.
    """
    waiting = 0
    for synced in Bench.sync():
        if synced.problem:
            note(f"{synced.experiment}: {synced.problem}")
            waiting += 1
        else:
            out.print(f"{synced.experiment}: {synced.cells} cells delivered to {synced.address}", soft_wrap=True)
    if waiting:
        out.print(f"{counted(waiting, 'journal')} could not be delivered; try again when MLflow answers.")
        return 1
    out.print("Nothing is left to deliver.")
    return 0
