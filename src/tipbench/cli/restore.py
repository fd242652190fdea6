"""`tipbench restore`: a backup in place of a home that is gone."""

from pathlib import Path

import click

from tipbench.cli.console import note, out
from tipbench.cli.progress import bytes_bar
from tipbench.core.paths import journal_folder
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.core.untrusted import printable
from tipbench.maintenance.restore import restore


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench restore /backups/tipbench-2026-04-27.tar.gz\n"
    "  TIPBENCH_HOME=/tmp/drill tipbench restore /backups/tipbench-2026-04-27.tar.gz"
)
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path) -> int:
    """Restore FILE, made by 'tipbench backup', to TIPBENCH_HOME, which must be empty or not exist.

    A FILE that is damaged anywhere changes nothing. Where TIPBENCH_HOME is another folder than before, the paths in it
    are changed.
    """
    settings = Settings()
    home = settings.home
    with bytes_bar("restoring") as show:
        done = 0

        def watch(count: int) -> None:
            nonlocal done
            done += count
            show(done, None)

        restored = restore(file, home, watch)
    head = restored.head
    out.print(
        f"{home}: {counted(restored.files, 'file')} as they were on {printable(head.began, 40)} (tipbench "
        f"{printable(head.tipbench, 40)})",
        soft_wrap=True,
    )
    note(
        "What was changed since then is gone: tokens that were withdrawn since work again, and users who were reset or "
        "erased since are back."
    )
    steps = ["tipbench doctor"]
    if any(journal_folder(home).glob("*.jsonl")):
        steps.append("tipbench sync (delivers cells that were not stored yet)")
    out.print(f"Next: {', '.join(steps)}, then start the servers; queued jobs start with them.", soft_wrap=True)
    return 0
