"""`tipbench sync`: deliver what was generated while MLflow was away."""

import click

from tipbench.bench.bench import Bench
from tipbench.cli.console import note, out


@click.command(epilog="Example:\n\n\b\n  tipbench sync")
def command() -> int:
    """Deliver what was generated while MLflow was away, to wherever each collection was going.

    Exit status: 0 everything is delivered, 1 something still waits.
    """
    waiting = 0
    for synced in Bench.sync():
        if synced.problem:
            note(f"{synced.experiment}: {synced.problem}")
            waiting += 1
        else:
            out.print(f"{synced.experiment}: {synced.cells} cells delivered to {synced.address}", soft_wrap=True)
    if waiting:
        out.print(f"{waiting} journals still wait; try again when MLflow answers.")
        return 1
    out.print("Nothing waits to be delivered.")
    return 0
