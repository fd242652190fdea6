"""`tipbench recommend`: the recommender."""

import click

from tipbench.cli.lazy import Subcommands


@click.command(
    cls=Subcommands,
    package="tipbench.cli.recommend",
    lines={
        "serve": "The service: score candidates, take rewards.",
        "promote": "Let a policy go live that has passed the gate.",
        "rollback": "Take the last promotion back.",
        "promotions": "Which policy is live, and how it came to be.",
        "move": "Move all users' states from files to PostgreSQL, or back.",
        "tips": "The bench's best tips as candidates, each with the run that it came from.",
        "rewards": "What the served tips earned, by (model, prompt), beside the leaderboard.",
    },
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend serve\n"
    "  tipbench recommend serve --workers 2 --shadow egreedy-v2-shadow\n"
    "  tipbench recommend promote egreedy/v2\n"
    "  tipbench recommend rewards --experiment tip-bench-first\n",
)
def command() -> None:
    """Which of the written tips should this user see now? Contextual bandits that learn from what users do."""
