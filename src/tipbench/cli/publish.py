"""`tipbench publish`: an experiment on MLflow's pages for prompts, traces, datasets and evaluations."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.console import bench_of, out, ui_hint
from tipbench.cli.flags import gather, option_flags
from tipbench.cli.progress import CollectingObserver
from tipbench.cli.progress_file import ProgressFile


@click.command(
    epilog="Examples:\n\n\b\n  tipbench publish --experiment tip-bench-first\n"
    "  tipbench publish --experiment tip-bench-first --mlflow-url http://localhost:5000"
)
@option_flags("experiment", "mlflow_url")
@click.option("--suite", help="The suite's folder, if this machine has not collected the experiment.")
@click.option(
    "--progress",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the progress, and in the end the result, to this JSON file.",
)
def command(suite: str | None, progress: Path | None, **given: Any) -> int:
    """Show an experiment on MLflow's own pages: prompts, traces, dataset and assessments.

    Every candidate becomes a trace with its prompt, answer, tokens and times, and every score that counts an
    assessment by its judge. Run it again whenever scores have come: only differences are written. Cells whose texts
    are in a batch that is open are left out, because judging is blind.
    """
    options = gather(given, suite=suite)
    progress_file = ProgressFile(progress)
    progress_file.experiment = options.experiment
    with progress_file, bench_of(options, CollectingObserver(progress_file)) as bench:
        published = bench.publish()
        progress_file.finish(published.in_short)
        out.print(published.in_short, soft_wrap=True)
        out.print(f"Look at it: {ui_hint(bench.store.address)}", soft_wrap=True)
    return 0
