"""`tipbench sim run`: which policy earns most from simulated users."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.progress_file import ProgressFile
from tipbench.cli.sim.flags import Flags, simulation_flags, split_names
from tipbench.cli.sim.run_report import margin_text, show_run, with_answer
from tipbench.cli.sim.running import interrupted, run_with_progress, write_out
from tipbench.core.errors import TipbenchError
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text
from tipbench.recommender.promotion.live import live_now

_POLICIES = "egreedy,egreedy/v2,linucb,category-mean"


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench sim run\n"
    "  tipbench sim run --personas switcher,specialist --seeds 100\n"
    "  tipbench sim run --policies egreedy/v2,egreedy/v2-flat --format json > found.json\n"
    "  tipbench sim run --http --seeds 3\n"
)
@click.option(
    "--policies", metavar="NAMES", default=_POLICIES, show_default=True, help="Policies to compare, comma-separated."
)
@click.option("--personas", metavar="NAMES", help="Personas to serve, comma-separated.  [default: all of the world]")
@simulation_flags
@click.option("--verbose", "-v", is_flag=True, help="All columns, by persona and over time.")
def command(policies: str, personas: str | None, progress: Path | None, verbose: bool, **given: Any) -> int:
    """Find out which policy earns most from simulated users.

    The same seeds give the same lives to every policy, and the same results every time. Nothing real is touched: the
    simulation has a folder of its own, which is removed afterwards.
    """
    with ProgressFile(progress) as progress_file:
        try:
            return _run(Flags(progress=progress, **given), policies, personas, progress_file, verbose)
        except KeyboardInterrupt:
            return interrupted(progress_file)


def _live() -> str | None:
    """Return the live policy; None where it can't be read, which is no reason to lose a simulation's results."""
    try:
        return live_now(Settings())
    except TipbenchError:
        return None


def _run(flags: Flags, policies: str, personas: str | None, progress_file: ProgressFile, verbose: bool) -> int:
    world = flags.open_world()
    if personas is not None:
        world = world.only(split_names(personas, "--personas"))
    request = flags.request("run", world, split_names(policies, "--policies"))
    again = ("tipbench", "sim", "run", "--policies", policies, *(("--personas", personas) if personas else ()))
    found = run_with_progress(request, flags, progress_file)
    found = with_answer(found, (*again, *flags.changed()), flags.world, _live())
    if flags.form == "json":
        click.echo(json_text(found))
    else:
        show_run(found, verbose)
    write_out(found, flags)
    earned = ", ".join(f"{arm} {margin_text(metrics['reward'])}" for arm, metrics in found["overall"].items())
    progress_file.finish(f"reward a decision over all personas: {earned}")
    return 0
