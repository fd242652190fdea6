"""A command of subcommands whose code is imported only when it is used: help must be instant."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class Subcommands(click.Group):
    """`lines` holds a line of help for each; a subcommand's module has its name, in `package`."""

    def __init__(self, *, package: str, lines: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._package = package
        self._lines = lines

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._lines:
            return None
        command: click.Command = importlib.import_module(f"{self._package}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines.items()))
