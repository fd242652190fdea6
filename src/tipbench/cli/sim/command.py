"""`tipbench sim`: simulated users."""

import click

from tipbench.cli.lazy import Subcommands


@click.command(
    cls=Subcommands,
    package="tipbench.cli.sim",
    lines={
        "run": "Find out which policy earns most from simulated users.",
        "gate": "Test whether a candidate beats the live policy, before it may go live.",
        "replay": "Estimate from the decision log what a candidate would have earned.",
    },
    epilog="Examples:\n\n\b\n"
    "  tipbench sim run\n"
    "  tipbench sim run --policies egreedy,egreedy/v2 --personas switcher --seeds 100\n"
    "  tipbench sim gate --candidate egreedy/v2 --incumbent egreedy\n"
    "  tipbench sim replay --candidate egreedy/v2\n",
)
def command() -> None:
    """Try a policy on simulated users before it serves real ones."""
