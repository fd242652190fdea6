"""`tipbench recommend`: the recommender."""

import click

from tipbench.cli.lazy import Subcommands


@click.command(
    cls=Subcommands,
    package="tipbench.cli.recommend",
    lines={
        "serve": "Start the service that scores candidates and takes rewards.",
        "promote": "Make a policy live that has passed the gate.",
        "rollback": "Undo the last promotion.",
        "prior": "Fit what is known about new users to the decision log.",
        "promotions": "Show which policy is live, and every promotion.",
        "move": "Move all users' states from files to PostgreSQL, or back.",
        "erase": "Erase everything about a user.",
        "tips": "Write the tips of the leaderboard's leading row as candidates.",
        "rewards": "Show which row's tips users respond to best.",
    },
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend serve\n"
    "  tipbench recommend serve --workers 2 --shadow egreedy-v2-shadow\n"
    "  tipbench recommend promote egreedy/v2\n"
    "  tipbench recommend rewards --experiment tip-bench-first\n",
)
def command() -> None:
    """Choose which tip a user sees now: contextual bandits that learn from what users do."""
