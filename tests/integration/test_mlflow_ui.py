"""A database that tipbench wrote in process is an MLflow database: MLflow's own server reads it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx

from tests.integration.command import tipbench
from tests.integration.mlflow_server import MlflowServer


def test_mlflow_shows_runs_scores_and_files_of_tipbenchs_own_database(tmp_path: Path) -> None:
    store = ("--experiment", "tip-bench-x", "--mlflow-url", f"sqlite:///{tmp_path / 'mlflow.db'}")
    collected = tipbench("collect", "--models", "scripted/a", "--n-scenarios", "1", *store)
    assert f"mlflow ui --backend-store-uri 'sqlite:///{tmp_path / 'mlflow.db'}'" in collected.out
    assert tipbench("judge", "--run", "lexical", *store).status == 0
    with MlflowServer.start(tmp_path) as server, httpx.Client(base_url=server.url) as http:
        found = http.get("/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": "tip-bench-x"}).json()
        query = {
            "experiment_ids": [found["experiment"]["experiment_id"]],
            "filter": "tags.`tipbench.kind` = 'cell' AND metrics.`judge/lexical/composite` >= 2",
        }
        runs = http.post("/api/2.0/mlflow/runs/search", json=query).json()["runs"]
        assert len(runs) == 3
        for run in runs:
            for name in ("candidates.json", "prompt.txt", "raw.txt", "rubric.md"):
                where = {"path": name, "run_uuid": run["info"]["run_id"]}
                file = http.get("/get-artifact", params=where)
                assert file.status_code == 200
                assert len(file.content) > 50
        more = tipbench("collect", "--models", "scripted/a", "--n-scenarios", "2", *store)
        assert more.status == 0, "the server has the file open and holds nobody up"
        assert len(http.post("/api/2.0/mlflow/runs/search", json={**query, "filter": ""}).json()["runs"]) == 7


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
