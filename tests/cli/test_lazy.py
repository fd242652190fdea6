"""Commands of subcommands whose code is imported only when it is used."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from tipbench.cli.lazy import Subcommands

GROUP = Subcommands(name="g", package="tipbench.cli.recommend", lines={"move": "Move all states."})


def test_help_is_made_of_the_lines_alone() -> None:
    said = CliRunner().invoke(GROUP, ["--help"]).output
    assert "move  Move all states." in said


def test_a_subcommand_is_imported_when_it_is_used() -> None:
    context = click.Context(GROUP)
    found = GROUP.get_command(context, "move")
    assert found
    assert found.name
    assert GROUP.get_command(context, "tips") is None
    assert GROUP.list_commands(context) == ["move"]


@pytest.mark.parametrize("name", ["sim", "recommend"])
def test_help_brings_no_numpy(name: str) -> None:
    code = f"import sys; from tipbench.cli.main import run; run([{name!r}, '--help']); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
