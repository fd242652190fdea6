"""`tipbench sim replay`: what would a candidate have earned, by the log of what was served?"""

import time
from pathlib import Path

import click

from tipbench.cli.console import note
from tipbench.cli.flags import log_flag
from tipbench.cli.sim.replay_report import record_line, show_replay
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import decisions_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text
from tipbench.recommender.replay.outcome import replay_data, run_replay
from tipbench.recommender.replay.record import store_replay
from tipbench.recommender.store.moving import read_priors

_FAILED = 1


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench sim replay --candidate egreedy/v2\n"
    "  tipbench sim replay --candidate egreedy/v2 --log backup/decisions --share 0.3\n"
    "  tipbench sim replay --candidate linucb --format json > replay.json\n\n"
    "Exits with 0 if the candidate earns more, 1 if not or if the log can't tell, 2 if it could not be replayed."
)
@click.option("--candidate", required=True, metavar="POLICY", help="Policy that should go live.")
@log_flag
@click.option(
    "--share",
    type=float,
    default=0.5,
    show_default=True,
    metavar="PART",
    help="Share of each user's decisions, the earliest ones, that the candidate learns from.",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(candidate: str, log: Path | None, share: float, form: str) -> int:
    """Estimate what a candidate would have earned, from the log of what was served. Nobody is served anything.

    The candidate learns from the first part of each user's decisions, and is then tested on the rest. The result
    is stored; if it speaks against the candidate, it blocks a promotion.
    """
    settings = Settings()
    home = settings.home
    if log and not log.is_dir():
        raise InvalidInput(f"--log {log} is not a folder; name the one that holds the log's .jsonl files")
    priors = read_priors([candidate], settings)
    replay = run_replay(log or decisions_folder(home), candidate, share, priors.__getitem__)
    found = replay_data(replay)
    record_id = store_replay(home, found, round(time.time() * 1000))
    if form == "json":
        click.echo(json_text(found))
        note(record_line(record_id))
    else:
        show_replay(found, record_id)
    return 0 if replay.verdict.passed else _FAILED
