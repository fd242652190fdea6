"""A part that can be taken out brings its command by being there."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tipbench
from tipbench.cli.lazy import load_package_command, package_commands
from tipbench.cli.main import COMMANDS, run

_PART = '''"""A part for a test."""

import click

HELP = "What the part is for."


@click.command()
def command() -> int:
    click.echo("the part ran")
    return 1
'''


@pytest.fixture
def extra_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder with a command beside those of the package, gone again after the test."""
    folder = tmp_path / "telegraph"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "command.py").write_text(_PART)
    (tmp_path / "command.py").write_text("raise SystemExit('no part, and not to be imported')")
    monkeypatch.setattr(tipbench, "__path__", [*tipbench.__path__, str(tmp_path)])
    yield "telegraph"
    for name in ("tipbench.telegraph", "tipbench.telegraph.command"):
        sys.modules.pop(name, None)


def test_a_part_is_listed_with_its_help_and_not_imported(extra_part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "telegraph    What the part is for." in capsys.readouterr().out
    assert not [name for name in sys.modules if name.startswith("tipbench.telegraph")]


def test_a_parts_command_runs_and_its_exit_status_counts(extra_part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([extra_part]) == 1
    assert capsys.readouterr().out == "the part ran\n"


def test_without_the_part_there_is_no_such_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["telegraph"]) == 2
    assert "telegraph" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "cli", "judge/judges", "..", "command"])
def test_only_a_folder_that_brings_a_command_is_a_part(name: str, extra_part: str) -> None:
    assert load_package_command(name) is None


@pytest.mark.parametrize("name", package_commands())
def test_every_part_has_a_help_line_an_example_and_a_name_of_its_own(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert name not in COMMANDS
    assert package_commands()[name] == importlib.import_module(f"tipbench.{name}.command").HELP
    assert run([name, "--help"]) == 0
    assert f"tipbench {name}" in capsys.readouterr().out.split("Example", 1)[1]
