"""`tipbench sim run`: simulated users are served by several policies."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.progress_file import ProgressFile
from tipbench.cli.sim.flags import Flags, simulation_flags, split_names
from tipbench.cli.sim.run_report import margin_text, show_run
from tipbench.cli.sim.running import interrupted, run_with_progress, write_out
from tipbench.core.untrusted import json_text

_POLICIES = "egreedy,egreedy/v2,linucb,category-mean"


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench sim run\n"
    "  tipbench sim run --personas switcher,specialist --seeds 100\n"
    "  tipbench sim run --policies egreedy/v2,egreedy/v2-flat --format json > found.json\n"
    "  tipbench sim run --http --seeds 3\n"
)
@click.option(
    "--policies", metavar="NAMES", default=_POLICIES, show_default=True, help="Who serves, with commas between them."
)
@click.option("--personas", metavar="NAMES", help="Who is served.  [default: all of the world]")
@simulation_flags
def command(policies: str, personas: str | None, progress: Path | None, **given: Any) -> int:
    """Simulated users are served by several policies; what each policy earns, by persona and over time.

    The same seeds give the same lives to every policy, and the same results every time. Nothing real is touched: the
    simulation has a folder of its own, which is gone afterwards.
    """
    with ProgressFile(progress) as progress_file:
        try:
            return _run(Flags(progress=progress, **given), policies, personas, progress_file)
        except KeyboardInterrupt:
            return interrupted(progress_file)


def _run(flags: Flags, policies: str, personas: str | None, progress_file: ProgressFile) -> int:
    world = flags.open_world()
    if personas is not None:
        world = world.only(split_names(personas, "--personas"))
    found = run_with_progress(flags.request("run", world, split_names(policies, "--policies")), flags, progress_file)
    if flags.form == "json":
        click.echo(json_text(found))
    else:
        show_run(found)
    write_out(found, flags)
    earned = ", ".join(f"{arm} {margin_text(metrics['reward'])}" for arm, metrics in found["overall"].items())
    progress_file.finish(f"reward a decision over all personas: {earned}")
    return 0
