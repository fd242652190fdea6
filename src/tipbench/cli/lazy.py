"""A command of subcommands whose code is imported only when it is used: help must be instant."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import click

import tipbench

_HELP = 'HELP = "'


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


# Commands of parts that can be taken out: a folder of the package with a `command.py` brings one of the folder's
# name.
#
# `command` in it is the command, and `HELP = "…"` its one line of help, read without importing the part. Without
# pathlib, whose import alone takes longer than all of this.


def parts() -> dict[str, str]:
    """The parts that bring a command, each with its line of help."""
    return {name: _help_in(file) for name, file in sorted(_files())}


def command_of(part: str) -> click.Command | None:
    if part not in dict(_files()):
        return None
    command: click.Command = importlib.import_module(f"tipbench.{part}.command").command
    return command


def _files() -> list[tuple[str, str]]:
    folders = [folder for root in tipbench.__path__ for folder in os.scandir(root)]
    files = [(folder.name, f"{folder.path}/command.py") for folder in folders if folder.is_dir()]
    return [(name, file) for name, file in files if os.path.isfile(file)]  # noqa: PTH113


def _help_in(file: str) -> str:
    with open(file, encoding="utf-8") as lines:  # noqa: PTH123
        found = next((line for line in lines if line.startswith(_HELP)), "")
    return found.removeprefix(_HELP).rstrip().removesuffix('"')
