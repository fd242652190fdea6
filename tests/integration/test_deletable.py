"""Airflow stays an option that can be taken out: nothing else in the package knows of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import tipbench

SOURCE = Path(tipbench.__path__[0])
PARTS = (SOURCE / "airflow",)


def test_nothing_outside_its_own_folders_says_the_word() -> None:
    files = [
        path for path in SOURCE.rglob("*") if path.is_file() and path.suffix in (".py", ".html", ".js", ".css", ".md")
    ]
    others = [path for path in files if not any(part in path.parents for part in PARTS)]
    assert len(others) > 200
    assert [str(path) for path in others if re.search("airflow", path.read_text(encoding="utf-8"), re.IGNORECASE)] == []


def test_without_its_folders_everything_else_goes_on(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "tipbench", ignore=shutil.ignore_patterns("airflow", "__pycache__"))
    code = """
import os, tipbench
assert tipbench.__path__[0].startswith(os.getcwd())
from tipbench.cli.main import run
from tipbench.server.app import admin_server
assert run(["--help"]) == 0
assert run(["airflow", "init"]) == 2
assert run(["run", "--models", "scripted/a", "--prompts", "v1", "--n-scenarios", "1", "--judge", "lexical"]) == 0
os.environ["TIPBENCH_RUNNER"] = "airflow"
assert run(["serve", "--port", "0"]) == 2
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "airflow" not in done.stdout
    assert "Traceback" not in done.stderr
