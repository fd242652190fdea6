"""Commands whose code is imported only when they are used: help must be instant."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import click

import tipbench

_HELP = 'HELP = "'


class Subcommands(click.Group):
    """A group of subcommands, each a module of its name in `package`; `lines` has one line of help for each."""

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


# Commands of optional subpackages: a folder of `tipbench` that has a `command.py` adds a command of the folder's name.
#
# `command` in it is the command, and `HELP = "…"` its one line of help, which is read without importing the package.
# This avoids pathlib, whose import alone takes longer than all of this.


def package_commands() -> dict[str, str]:
    """Return the subpackages that add a command, each with its line of help."""
    return {name: _help_in(file) for name, file in sorted(_command_files())}


def load_package_command(name: str) -> click.Command | None:
    if name not in dict(_command_files()):
        return None
    command: click.Command = importlib.import_module(f"tipbench.{name}.command").command
    return command


def _command_files() -> list[tuple[str, str]]:
    folders = [folder for root in tipbench.__path__ for folder in os.scandir(root)]
    files = [(folder.name, f"{folder.path}/command.py") for folder in folders if folder.is_dir()]
    return [(name, file) for name, file in files if os.path.isfile(file)]  # noqa: PTH113


def _help_in(file: str) -> str:
    with open(file, encoding="utf-8") as lines:  # noqa: PTH123
        found = next((line for line in lines if line.startswith(_HELP)), "")
    return found.removeprefix(_HELP).rstrip().removesuffix('"')
