"""The workflow files in docs/ci: the commands that they hold pass a build, and fail it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import xmlschema
import yaml

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
SUITE = Path(__file__).parent / "suites" / "support"
KNOWS = {
    "return": "Hello! Within 30 days.",
    "Norway": "Hello! It costs 12 euros.",
    "Sunday": "10:00",
    "JSON": '{"number": 7}',
    "discount": "Hello, we do not.",
    "write to": "Hello, to help.me@shop.example please.",
    "foot": "Hello, size 42.",
    "red": "Hello, yes it is.",
}


def _github() -> tuple[list[str], set[str]]:
    data = yaml.safe_load((CI / "github-actions.yml").read_text(encoding="utf-8"))
    job = data["jobs"]["tipbench"]
    return [step["run"] for step in job["steps"] if "run" in step], {*data["env"], *job["env"], "GITHUB_STEP_SUMMARY"}


def _gitlab() -> tuple[list[str], set[str]]:
    job: dict[str, Any] = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))["tipbench"]
    return [*job["before_script"], *job["script"]], set(job["variables"])


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models, one that knows the answers and one that does not, and the command."""
    for name, rules in (("knows", KNOWS), ("guesses", {})):
        lines = [{"when": when, "answer": answer} for when, answer in rules.items()]
        script = {"parameters": 1_000_000, "rules": [*lines, {"answer": "Unfortunately, I can't say."}]}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    (tmp_path / "bin").mkdir()
    tipbench = tmp_path / "bin" / "tipbench"
    tipbench.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tipbench "$@"\n')
    tipbench.chmod(0o755)
    return tmp_path


def _build(commands: list[str], folder: Path, **values: str) -> tuple[int, str]:
    """Run a workflow's commands up to the first that fails; return the last status, and what that command printed."""
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "SUITE": str(SUITE),
        "MIN_GAIN": "-0.5",
        "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db",
        "GITHUB_STEP_SUMMARY": str(folder / "tipbench.md"),
        **values,
    }
    for command in commands:
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            break
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workflow", [_github, _gitlab])
def test_a_workflows_commands_pass_and_fail_a_build(workflow: Any, models: Path) -> None:
    commands, variables = workflow()
    assert {"SUITE", "MODELS", "ROW", "MIN_GAIN", "MLFLOW_TRACKING_URI"} <= variables
    assert [command.split()[0] for command in commands] == ["pip", *["tipbench"] * 4]
    own = [command for command in commands if command.startswith("tipbench") and " pull " not in command]
    junit = xmlschema.XMLSchema(ROOT / "tests" / "bench" / "compare" / "junit.xsd")
    both = "scripted/knows.yaml,scripted/guesses.yaml"

    status, said = _build(own, models, MODELS=both, ROW="scripted/knows.yaml×v1")
    assert status == 0, said
    assert said.startswith("Gate: scripted/knows.yaml × v1 held"), "the answer comes first"
    junit.validate(models / "tipbench.xml")
    assert 'failures="0"' in (models / "tipbench.xml").read_text(encoding="utf-8")
    assert "✅" in (models / "tipbench.md").read_text(encoding="utf-8")

    status, said = _build(own[2:], models, MODELS=both, ROW="scripted/guesses.yaml×v1")
    assert status == 1, said
    assert "lost" in said.splitlines()[0]
    junit.validate(models / "tipbench.xml")
    assert 'failures="1"' in (models / "tipbench.xml").read_text(encoding="utf-8")

    status, said = _build(own[2:], models, MODELS=both, ROW="scripted/knows.yaml×v1", MIN_GAIN="0")
    assert status == 3, said
    assert said.startswith("Gate: too little is known about scripted/knows.yaml × v1")
    assert "❔" in (models / "tipbench.md").read_text(encoding="utf-8")

    status, said = _build(own[2:], models, MODELS=both, ROW="scripted/nobody.yaml×v1")
    assert status == 2, said
