"""`tipbench sim`: simulated users."""

import click

from tipbench.cli.lazy import Subcommands


@click.command(
    cls=Subcommands,
    package="tipbench.cli.sim",
    lines={
        "run": "Simulated users are served by several policies; what each earns, by persona and over time.",
        "gate": "Has a candidate won over the live policy? The test that a worse policy fails.",
        "replay": "What would a candidate have earned? By the log of what was served.",
    },
    epilog="Examples:\n\n\b\n"
    "  tipbench sim run\n"
    "  tipbench sim run --policies egreedy,egreedy/v2 --personas switcher --seeds 100\n"
    "  tipbench sim gate --candidate egreedy/v2 --incumbent egreedy\n"
    "  tipbench sim replay --candidate egreedy/v2\n",
)
def command() -> None:
    """Simulated users: how good is a policy, before anybody real is served by it?"""
