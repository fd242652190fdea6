"""Code that is imported only when it is used."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tipbench.bench.bench import Bench
from tipbench.bench.tracking.descriptions import DESCRIPTION
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


def test_numpy_is_brought_by_scores_and_not_by_collecting(tmp_path: Path) -> None:
    """After both, the answer is published; before anything is judged, that takes no statistics."""
    url = f"sqlite:///{tmp_path / 'm.db'}"

    def brings_numpy(*words: str) -> str:
        code = "import sys; from tipbench.cli.main import run; print(run(sys.argv[1:]), 'numpy' in sys.modules)"
        command = [sys.executable, "-c", code, *words, "--experiment", "tip-bench-lazy", "--mlflow-url", url]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]

    assert brings_numpy("collect", "--models", "scripted/a", "--n-scenarios", "2") == "0 False"
    with Bench("tip-bench-lazy", mlflow_url=url) as bench:
        assert "No answer yet: nothing is judged." in bench.experiment.tags[DESCRIPTION]
    assert brings_numpy("judge", "--run", "lexical") == "0 True"
