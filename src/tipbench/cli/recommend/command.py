"""`tipbench recommend`: the recommender. A subcommand's code is imported only when it is used."""

import importlib

import click

# name → one line of help; the module has the subcommand's name
SUBCOMMANDS = {
    "serve": "The service: score candidates, take rewards.",
    "move": "Move all users' states from files to PostgreSQL, or back.",
    "tips": "The bench's best tips as candidates, each with the run that it came from.",
    "rewards": "What the served tips earned, by (model, prompt), beside the leaderboard.",
}


class _Subcommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = importlib.import_module(f"tipbench.cli.recommend.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


@click.command(
    cls=_Subcommands,
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend serve\n"
    "  tipbench recommend serve --workers 2 --shadow egreedy-v2-shadow\n"
    "  tipbench recommend rewards --experiment tip-bench-first\n",
)
def command() -> None:
    """Which of the written tips should this user see now? Contextual bandits that learn from what users do."""
