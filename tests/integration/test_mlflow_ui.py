"""A database that tipbench wrote in process is an MLflow database: MLflow's own server reads it."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser import opened_browser
from tests.integration.command import tipbench
from tests.integration.mlflow_server import MlflowServer

HOSTILE = [
    "<script>document.title = 'taken'</script><img src='http://remote.invalid/a.png'> is a text.",
    "![a picture](http://remote.invalid/b.png) and [a link](javascript:alert(1))",
    "http://remote.invalid/, www.remote.invalid, @remote, remote@remote.invalid",
    "<iframe src='http://remote.invalid/c'></iframe> <!-- a comment",
    "# A heading | **bold** ```code",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ui")


@pytest.fixture(scope="module")
def store(folder: Path) -> tuple[str, ...]:
    """A database with judged cells, one of them by a hostile model."""
    flags = ("--experiment", "tip-bench-x", "--mlflow-url", f"sqlite:///{folder / 'mlflow.db'}")
    script = folder / "hostile.yaml"
    script.write_text(json.dumps({"parameters": 1_000_000_000, "rules": [{"answer": json.dumps(HOSTILE)}]}))
    collected = tipbench("collect", "--models", "scripted/a", "--n-scenarios", "1", *flags)
    assert f"mlflow ui --backend-store-uri 'sqlite:///{folder / 'mlflow.db'}'" in collected.out
    hostile = tipbench("collect", "--models", f"scripted/{script}", "--prompts", "v1", "--n-scenarios", "1", *flags)
    assert hostile.status == 0
    assert tipbench("judge", "--run", "lexical", *flags).status == 0
    return flags


@pytest.fixture(scope="module")
def server(folder: Path, store: tuple[str, ...]) -> Iterator[MlflowServer]:
    assert store
    with MlflowServer.start(folder) as started:
        yield started


def test_mlflow_shows_runs_scores_and_files_of_tipbenchs_own_database(
    store: tuple[str, ...], server: MlflowServer
) -> None:
    with httpx.Client(base_url=server.url) as http:
        found = http.get("/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": "tip-bench-x"}).json()
        query = {
            "experiment_ids": [found["experiment"]["experiment_id"]],
            "filter": "tags.`tipbench.kind` = 'cell' AND metrics.`judge/lexical/composite` >= 2",
        }
        runs = http.post("/api/2.0/mlflow/runs/search", json=query).json()["runs"]
        assert len(runs) == 4
        for run in runs:
            for name in ("candidates.json", "prompt.txt", "raw.txt", "rubric.md"):
                where = {"path": name, "run_uuid": run["info"]["run_id"]}
                file = http.get("/get-artifact", params=where)
                assert file.status_code == 200
                assert len(file.content) > 50
        more = tipbench("collect", "--models", "scripted/a", "--n-scenarios", "2", *store)
        assert more.status == 0, "the server has the file open and holds nobody up"
        assert len(http.post("/api/2.0/mlflow/runs/search", json={**query, "filter": ""}).json()["runs"]) == 8


def test_its_pages_show_descriptions_and_run_nothing_in_them(folder: Path, server: MlflowServer) -> None:
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        found = "SELECT run_uuid, experiment_id FROM runs WHERE name LIKE '%hostile.yaml × v1'"
        [(run_id, experiment_id)] = database.execute(found).fetchall()
    with opened_browser() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{server.url}/#/experiments/{experiment_id}/runs/{run_id}")
        expect(page.get_by_text("Not judged yet")).to_be_visible(timeout=30_000)
        for text in HOSTILE:
            expect(page.get_by_text(text, exact=True)).to_be_attached()
        shown = page.locator("li", has_text="is a text.").locator("xpath=../..")
        assert shown.locator("a, img, iframe, h1, code, del").count() == 0
        expect(page.get_by_role("cell", name="lexical (provisional)")).to_be_attached()
        expect(page.get_by_text("tipbench updates the")).to_have_count(0)
        page.goto(f"{server.url}/#/experiments/{experiment_id}/runs")
        expect(page.get_by_text("No answer yet: scores come from simple rules")).to_be_visible(timeout=30_000)
        assert "taken" not in page.title()
        assert [url for url in asked if "remote" in url] == []


def test_mlflow_finds_the_database_in_order(tmp_path: Path) -> None:
    """Its own upgrade passes over it, and SQLite finds no row that points to nothing."""
    url = f"sqlite:///{tmp_path / 'mlflow.db'}"
    store = ("--experiment", "tip-bench-x", "--mlflow-url", url)
    assert tipbench("run", "--models", "scripted/a", "--judge", "lexical", *store).status == 0
    before = tipbench("compare", *store, "--format", "json").out
    upgraded = subprocess.run(
        [sys.executable, "-m", "mlflow", "db", "upgrade", url], capture_output=True, text=True, check=False
    )
    assert upgraded.returncode == 0, upgraded.stderr
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    assert tipbench("compare", *store, "--format", "json").out == before
