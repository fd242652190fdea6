"""Comparing over REST: what has not changed costs one request, and what has is seen at once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.integration.command import Finished, tipbench
from tests.integration.filling import fill
from tests.integration.mlflow_server import MlflowServer
from tipbench.bench.tracking.mlflow_client import MlflowClient
from tipbench.bench.tracking.runs import SUPERSEDED
from tipbench.bench.tracking.write_markers import WRITING

NAME = "tip-bench-looks"
ONE_REQUEST = ["/api/2.0/mlflow/experiments/get-by-name"]
Command = Callable[..., Finished]


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """Of its own: no other test's experiments are to be read here."""
    with MlflowServer.start(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of what is asked of the server."""
    asked: list[str] = []
    send = MlflowClient._send

    def noted(self: MlflowClient, method: str, path: str, **arguments: Any) -> httpx.Response:
        asked.append(path)
        return send(self, method, path, **arguments)

    monkeypatch.setattr(MlflowClient, "_send", noted)
    return asked


def _api(server: MlflowServer, call: str, body: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = httpx.post(f"{server.url}/api/2.0/mlflow/{call}", json=body).raise_for_status().json()
    return answer


def _experiment(server: MlflowServer, name: str) -> dict[str, Any]:
    url = f"{server.url}/api/2.0/mlflow/experiments/get-by-name"
    found: dict[str, Any] = httpx.get(url, params={"experiment_name": name}).json().get("experiment", {})
    return found


def _writers(server: MlflowServer, name: str) -> list[str]:
    return [tag["key"] for tag in _experiment(server, name).get("tags", []) if tag["key"].startswith(WRITING)]


def test_from_collecting_to_comparing(mlflow: MlflowServer, tmp_path: Path, requests: list[str]) -> None:
    at = ("--experiment", NAME, "--mlflow-url", mlflow.url)

    def compared(*words: str) -> tuple[str, list[str]]:
        requests.clear()
        done = tipbench("compare", *at, "--format", "json", *words)
        assert done.status == 0, done.err
        return done.out, list(requests)

    assert tipbench("collect", "--models", "scripted/a,scripted/b", "--n-scenarios", "2", *at).status == 0
    assert sum("experiment-tag" in path for path in requests) <= 6  # not one a run
    assert _writers(mlflow, NAME) == []
    pending, asked = compared()
    assert asked == ONE_REQUEST, "the collection has read them, to describe the experiment"
    assert compared("--refresh")[0] == pending

    file = tmp_path / "judge.json"
    assert tipbench("judge", *at, "--export", str(file)).status == 0
    fill(file)
    requests.clear()
    assert tipbench("judge", *at, "--apply", str(file)).status == 0
    assert sum("experiment-tag" in path for path in requests) == 4  # three marks and the experiment's description
    assert _writers(mlflow, NAME) == []
    judged, asked = compared()
    assert judged != pending
    assert asked == ONE_REQUEST
    requests.clear()
    assert tipbench("experiments", "list", "--mlflow-url", mlflow.url).status == 0
    assert not [path for path in requests if path.endswith("runs/search")]

    found = _api(mlflow, "runs/search", {"experiment_ids": [_experiment(mlflow, NAME)["experiment_id"]]})["runs"]
    cell = next(run for run in found if any(tag["value"] == "cell" for tag in run["data"]["tags"]))
    _api(mlflow, "runs/set-tag", {"run_id": cell["info"]["run_id"], "key": SUPERSEDED, "value": "true"})
    assert compared() == (judged, ONE_REQUEST)  # past tipbench, and so past its marks
    refreshed, asked = compared("--refresh")
    assert refreshed != judged
    assert len(asked) > 1
    assert compared() == (refreshed, ONE_REQUEST)

    assert tipbench("collect", "--models", "scripted/a,scripted/b", "--n-scenarios", "3", *at).status == 0
    more, asked = compared()
    assert more != refreshed
    assert asked == ONE_REQUEST


@pytest.mark.timeout(120)
def test_after_a_kill_nothing_kept_is_trusted(mlflow: MlflowServer, tmp_path: Path, requests: list[str]) -> None:
    name = "tip-bench-killed"
    script = tmp_path / "slow.yaml"
    script.write_text(yaml.safe_dump({"parameters": 1_000_000_000, "latency_s": 0.2}))
    words = ("collect", "--models", f"scripted/{script}", "--experiment", name, "--mlflow-url", mlflow.url)
    process = subprocess.Popen(
        [sys.executable, "-m", "tipbench", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not _writers(mlflow, name) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(_writers(mlflow, name)) == 1

    def compared() -> tuple[str, list[str]]:
        requests.clear()
        done = tipbench("compare", "--experiment", name, "--mlflow-url", mlflow.url, "--format", "csv")
        assert done.status == 0, done.err
        return done.out, list(requests)

    for _ in range(2):
        assert len(compared()[1]) > 1
    assert tipbench(*words).status == 0  # goes on from there
    done, asked = compared()
    assert len(asked) > 1
    assert len(_writers(mlflow, name)) == 1
    assert done.count(",8,") >= 3  # all cells of each row
