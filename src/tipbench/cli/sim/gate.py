"""`tipbench sim gate`: has a candidate won over the live policy?"""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.console import note
from tipbench.cli.progress_file import ProgressFile
from tipbench.cli.sim.flags import Flags, simulation_flags
from tipbench.cli.sim.gate_report import Contest, next_step, show_gate
from tipbench.cli.sim.running import interrupted, run_with_progress, write_out
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text
from tipbench.recommender.promotion.gate_records import store_gate
from tipbench.recommender.promotion.live import live_now

_FAILED = 1


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench sim gate --candidate ucb/v3\n"
    "  tipbench sim gate --candidate ucb/v3@0c3f1a9e5b7d2468    # with a population prior\n"
    "  tipbench sim gate --candidate egreedy/v2 --incumbent egreedy --seeds 60 --first-seed 20000\n"
    "  tipbench sim gate --candidate linucb --format json > verdict.json\n\n"
    "Exits with 0 if it passed, 1 if not, 2 if it could not be run."
)
@click.option("--candidate", required=True, metavar="POLICY", help="Policy that should go live.")
@click.option("--incumbent", metavar="POLICY", help="Policy that it has to beat.  [default: the live policy]")
@simulation_flags
def command(candidate: str, incumbent: str | None, progress: Path | None, **given: Any) -> int:
    """Test whether a candidate beats the live policy and plain baselines, before it may go live.

    The gate is also run for the incumbent against itself, for the candidate with its new features assigned to the wrong
    tips, and for its prior, if it has one, made worthless. All of these must fail, or nothing passes. The result is
    stored, and a promotion depends on it.
    """
    with ProgressFile(progress) as progress_file:
        try:
            return _gate(Flags(progress=progress, **given), candidate, incumbent, progress_file)
        except KeyboardInterrupt:
            return interrupted(progress_file)


def _gate(flags: Flags, candidate: str, incumbent: str | None, progress_file: ProgressFile) -> int:
    settings = Settings()
    contest = Contest(candidate, incumbent or live_now(settings), flags.world)
    request = flags.request("gate", flags.open_world(), (contest.candidate, contest.incumbent))
    found = run_with_progress(request, flags, progress_file)
    try:
        record_id = store_gate(settings.home, found)
    except OSError:
        _show(found, contest, "", flags.form)  # it took minutes: show it before failing
        raise
    _show(found, contest, record_id, flags.form)
    write_out(found, flags)
    progress_file.finish(f"{found['gate']['says']} Stored as gate {record_id}.", record_id=record_id)
    return 0 if found["gate"]["passed"] else _FAILED


def _show(found: dict[str, Any], contest: Contest, record_id: str, form: str) -> None:
    if form == "json":
        click.echo(json_text(found))
        note(next_step(found, contest, record_id))
    else:
        show_gate(found, contest, record_id)
