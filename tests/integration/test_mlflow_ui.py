"""A database that tipbench wrote in process is an MLflow database: MLflow's own server reads it."""

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
