"""`tipbench prune`: nothing is kept for longer than so many days."""

import time
from contextlib import closing
from pathlib import Path

import click

from tipbench.cli.console import note, out
from tipbench.core.paths import decisions_folder, server_folder, signals_folder
from tipbench.core.settings import Settings
from tipbench.core.text import counted, utc_minute
from tipbench.recommender.log.rewriting import exclusive_logs
from tipbench.recommender.retention import age_of, remove_expired
from tipbench.server.jobs.local_jobs import JobReader

_DAY_MS = 86_400_000


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench prune --keep-days 90 --dry-run\n"
    "  tipbench prune --keep-days 90    # daily, by cron or a timer\n\n"
    "Servers may run meanwhile. If interrupted, run the same command again."
)
@click.option(
    "--keep-days", type=click.IntRange(1, 36_500), required=True, metavar="N", help="Remove what is older than N days."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def command(keep_days: int, dry_run: bool) -> int:
    """Remove old lines of the recommender's decision log, old shadow signals, and logs of jobs that ended long ago.

    States of users, results, jobs themselves and their files stay.
    """
    home, before_ms = Settings().home, round(time.time() * 1000) - keep_days * _DAY_MS
    with exclusive_logs(home, note):
        decisions, signals = decisions_folder(home), signals_folder(home)
        log_age, signal_age = age_of(decisions, before_ms), age_of(signals, before_ms)
        logs = _old_job_logs(home, before_ms)
        if not dry_run:
            for folder, age in ((decisions, log_age), (signals, signal_age)):
                if age.expired:
                    remove_expired(folder, before_ms)
            for path in logs:
                path.unlink(missing_ok=True)
    parts = [f"{counted(log_age.expired, 'line')} of the decision log"] if log_age.expired else []
    parts += [counted(signal_age.expired, "shadow signal")] if signal_age.expired else []
    parts += [counted(len(logs), "job log")] if logs else []
    if parts:
        done = "It would remove" if dry_run else "Removed"
        out.print(f"{done} what is from before {utc_minute(before_ms)}: {', '.join(parts)}.", soft_wrap=True)
    else:
        out.print(f"Nothing is from before {utc_minute(before_ms)}, so nothing was removed.", soft_wrap=True)
    if log_age.kept_from_ms is not None:
        goes = "would go" if dry_run and log_age.expired else "goes"
        out.print(f"The decision log {goes} back to {utc_minute(log_age.kept_from_ms)}.", soft_wrap=True)
    return 0


def _old_job_logs(home: Path, before_ms: int) -> list[Path]:
    """Return the log files of the server's jobs that ended before a moment."""
    found: list[Path] = []
    for name in ("jobs", "simulations"):
        if (server_folder(home) / f"{name}.db").exists():
            with closing(JobReader(home, name)) as jobs:
                found += jobs.logs_before(before_ms)
    return found
