"""`tipbench backup`: everything in the home, in one file."""

import time
from pathlib import Path

import click

from tipbench.cli.console import note, out
from tipbench.cli.progress import bytes_bar
from tipbench.core.settings import Settings
from tipbench.core.text import duration, size
from tipbench.maintenance.backup import make_backup
from tipbench.maintenance.elsewhere import stored_elsewhere


@click.command(epilog="Example:\n\n\b\n  tipbench backup /backups/tipbench-$(date +%F).tar.gz")
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path) -> int:
    """Copy everything in TIPBENCH_HOME to FILE, which must not exist: results, users' states, tokens, jobs, logs.

    Nothing has to be stopped. Whatever was acknowledged before the backup began is in it. 'tipbench restore FILE' puts
    it back.
    """
    settings = Settings()
    started = time.monotonic()
    with bytes_bar("copying") as show:
        made = make_backup(file, settings.home, time.time, show)
    taken = duration(time.monotonic() - started)
    out.print(
        f"{file}: {size(file.stat().st_size)}, which hold {made.files:,} files of {settings.home} ({taken})",
        soft_wrap=True,
    )
    for missing in stored_elsewhere(settings):
        out.print(f"Not in it: {missing}", soft_wrap=True)
    note("It holds tokens and keys, and what is known of users: keep it where nobody else can read it.")
    return 0
