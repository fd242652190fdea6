"""The wheel, built from the source distribution and installed elsewhere, does what the checkout does, demo included."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from packaging.metadata import Metadata

from tipbench.core.version import __version__

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
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
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


def test_the_wheel_has_the_package_and_nothing_else(elsewhere: Path) -> None:
    (wheel,) = (elsewhere / "dist").glob("*.whl")
    src = ROOT / "src"
    files = {str(path.relative_to(src)) for path in src.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        (info,) = {name.partition("/")[0] for name in names} - {"tipbench"}
        described = packed.read(f"{info}/METADATA").decode()
    assert {name for name in names if name.startswith("tipbench/")} == files
    licences = {f"{info}/licenses/{name}" for name in ("LICENSE", "src/tipbench/server/ui/static/htmx-LICENSE.txt")}
    own = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    assert {name for name in names if name.startswith(info)} == own | licences
    metadata = Metadata.from_email(described)  # raises if anything is invalid
    assert (str(metadata.version), metadata.license_expression) == (__version__, "Apache-2.0 AND 0BSD")
    assert str(metadata.requires_python) == ">=3.11"
    assert metadata.description_content_type == "text/markdown"


def test_the_source_distribution_has_what_tests_and_releases_need_and_no_leftovers(elsewhere: Path) -> None:
    (source,) = (elsewhere / "dist").glob("*.tar.gz")
    with tarfile.open(source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    tops = {name.partition("/")[0] for name in names}
    locks = {path.name for path in ROOT.glob("requirements*.lock")}
    folders = {"src", "tests", "benchmarks", "dags", "deploy", "docs"}
    files = {
        "Makefile",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "pyproject.toml",
        ".gitignore",
        "PKG-INFO",
    }
    assert tops == folders | files | locks
    assert not [name for name in names if name.endswith((".pyc", ".db", ".log")) or "/." in name]
    assert {"tests/integration/homes/0.1.0.tar.xz", "docs/images/report-desktop.png", "deploy/compose.yaml"} <= names


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
