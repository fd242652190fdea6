"""Which Pythons `make test-all-pythons` finds: none is left out without a word."""

import sys
from pathlib import Path

import pytest

from tests.all_pythons import SUPPORTED, find

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
SHIM = '#!/bin/sh\necho "pyenv: python9.9: command not found" >&2\nexit 127\n'


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_one_that_starts_is_found(programs: Path) -> None:
    program = programs / f"python{VERSION}"
    program.symlink_to(sys.executable)
    assert find(VERSION) == (VERSION, program, "")


def test_one_that_is_missing_is_said(programs: Path) -> None:
    assert find("9.9").problem == "there is no python9.9 on PATH"


def test_one_that_does_not_start_is_said(programs: Path) -> None:
    program = programs / "python9.9"
    program.write_text(SHIM)
    program.chmod(0o755)
    found = find("9.9")
    assert found.program is None
    assert found.problem == f"{program} is no Python 9.9: 'pyenv: python9.9: command not found'"


def test_one_of_another_version_is_said(programs: Path) -> None:
    (programs / "python9.9").symlink_to(sys.executable)
    assert find("9.9").problem.endswith(f"is no Python 9.9: '{VERSION}'")


def test_each_python_that_the_package_names_is_run() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    named = [
        line.split(" :: ")[-1].rstrip('",')
        for line in text.splitlines()
        if '"Programming Language :: Python :: 3.' in line
    ]
    assert tuple(named) == SUPPORTED
