"""`tipbench sync`: deliver what was generated while MLflow was away."""

import click

from tipbench.bench.collect.delivery import deliver_left_behind
from tipbench.bench.collect.journal import left_behind
from tipbench.bench.tracking.address import open_store
from tipbench.cli.workplace import note, out
from tipbench.core.errors import TipbenchError
from tipbench.core.paths import journal_folder
from tipbench.core.settings import Settings


@click.command(epilog="Example:\n\n\b\n  tipbench sync")
def command() -> int:
    """Deliver what was generated while MLflow was away, to wherever each collection was going.

    Exit status: 0 everything is delivered, 1 something still waits.
    """
    settings = Settings()
    waiting = 0
    for journal in left_behind(journal_folder(settings.home)):
        head = journal.head
        try:
            opened = open_store(head.address, settings, create=True)
            try:
                delivered = deliver_left_behind([journal], opened.store)
            finally:
                opened.store.close()
        except TipbenchError as error:
            journal.close()
            note(f"{head.experiment}: {error}")
            waiting += 1
            continue
        out.print(f"{head.experiment}: {delivered.cells} cells delivered to {head.address}", soft_wrap=True)
    if waiting:
        out.print(f"{waiting} journals still wait; try again when MLflow answers.")
        return 1
    out.print("Nothing waits to be delivered.")
    return 0
