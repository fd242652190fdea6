"""`tipbench publish`: an experiment on MLflow's pages for prompts, traces, datasets and evaluations."""

from typing import Any

import click

from tipbench.cli.console import bench_of, out, ui_hint
from tipbench.cli.flags import gather, option_flags


@click.command(
    epilog="Examples:\n\n\b\n  tipbench publish --experiment tip-bench-first\n"
    "  tipbench publish --experiment tip-bench-first --mlflow-url http://localhost:5000"
)
@option_flags("experiment", "mlflow_url")
@click.option("--suite", help="The suite's folder, if this machine has not collected the experiment.")
def command(suite: str | None, **given: Any) -> int:
    """Show an experiment on MLflow's own pages: prompts, traces, dataset and assessments.

    Every candidate becomes a trace with its prompt, answer, tokens and times, and every score that counts an
    assessment by its judge. Run it again whenever scores have come: only differences are written. Cells whose texts
    are in a batch that is open are left out, because judging is blind.
    """
    options = gather({**given, "suite": suite})
    with bench_of(options) as bench:
        published = bench.publish()
        out.print(published.in_short, soft_wrap=True)
        out.print(f"Look at it: {ui_hint(bench.store.address)}", soft_wrap=True)
    return 0
