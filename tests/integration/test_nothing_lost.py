"""Kill it anywhere, take MLflow away: every cell is there once, and nothing that was generated is lost."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.integration.command import Finished, tipbench, tipbench_process
from tests.integration.mlflow_server import MlflowServer
from tipbench.collect import delivery
from tipbench.settings import Settings
from tipbench.tracking.address import open_store
from tipbench.tracking.interface import StoredRun
from tipbench.tracking.runs import CELL, KIND, stored_candidates

CELLS = 3 * 8  # of one repeat


def _command(tmp_path: Path, url: str, latency_s: float, repeats: int = 4) -> tuple[str, ...]:
    script = tmp_path / "slow.yaml"
    script.write_text(yaml.safe_dump({"parameters": 1_000_000_000, "latency_s": latency_s}))
    return (
        *("collect", "--models", f"scripted/{script}", "--repeats", str(repeats)),
        *("--experiment", "tip-bench-kill", "--mlflow-url", url),
    )


def _runs(url: str) -> list[StoredRun]:
    """All runs, also deleted readers' blind spots: those that are still open."""
    opened = open_store(url, Settings())
    try:
        runs = opened.store.every_run(opened.store.experiment("tip-bench-kill"), {KIND: CELL})
        for run in runs:
            assert len(stored_candidates(opened.store, run).texts) == 5
            assert opened.store.text(run, "raw.txt")
        return runs
    finally:
        opened.store.close()


def _wait_for_some_runs(url: str, count: int = 10) -> None:
    """Until a collection is in the middle of its cells."""
    api = f"{url}/api/2.0/mlflow"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = httpx.get(f"{api}/experiments/get-by-name", params={"experiment_name": "tip-bench-kill"}).json()
        if "experiment" in found:
            ids = [found["experiment"]["experiment_id"]]
            runs = httpx.post(f"{api}/runs/search", json={"experiment_ids": ids}).json().get("runs", [])
            if len(runs) >= count:
                return
        time.sleep(0.1)
    raise AssertionError("the collection did not begin")


def _assert_each_cell_once(url: str, repeats: int = 4) -> None:
    runs = _runs(url)
    assert {run.status for run in runs} == {"FINISHED"}
    assert len(runs) == CELLS * repeats
    assert len({run.tags["tipbench.cell_key"] for run in runs}) == CELLS * repeats


@pytest.mark.timeout(240)
def test_killed_ten_times_at_random_moments_every_cell_is_there_once(tmp_path: Path, home: Path) -> None:
    url = f"sqlite:///{tmp_path / 'mlflow.db'}"
    command = _command(tmp_path, url, latency_s=0.02, repeats=12)
    drawn = random.Random(7)
    killed = 0
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-m", "tipbench", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(drawn.uniform(0.4, 1.4))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert killed >= 5, "most kills hit a running process"
    done = tipbench_process(*command)
    assert done.status == 0, done.err
    _assert_each_cell_once(url, repeats=12)
    assert list((home / "journal").iterdir()) == []


@pytest.mark.timeout(240)
def test_mlflow_that_goes_away_in_the_middle_and_comes_back_gets_everything_once(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    first = MlflowServer.start(folder)
    port = urlsplit(first.url).port
    done: list[Finished] = []
    collecting = threading.Thread(
        target=lambda: done.append(tipbench_process(*_command(tmp_path, first.url, latency_s=0.1)))
    )
    collecting.start()
    _wait_for_some_runs(first.url)
    first.stop()
    time.sleep(2)
    with MlflowServer.start(folder, port=port) as second:
        collecting.join()
        assert done[0].status == 0, done[0].err
        assert "MLflow was away" in done[0].out
        _assert_each_cell_once(second.url)


@pytest.mark.timeout(240)
def test_mlflow_that_stays_away_gets_everything_by_sync(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE_S", 3.0)  # it does not come back, however long one waits
    monkeypatch.setattr(delivery.Delivery.finish, "__defaults__", (3.0,))
    folder = tmp_path / "server"
    first = MlflowServer.start(folder)
    port = urlsplit(first.url).port

    def stop_in_the_middle() -> None:
        _wait_for_some_runs(first.url)
        first.stop()

    stopper = threading.Thread(target=stop_in_the_middle)
    stopper.start()
    done = tipbench(*_command(tmp_path, first.url, latency_s=0.08))
    stopper.join()
    assert done.status == 1
    assert "tipbench sync" in done.out
    assert len(os.listdir(home / "journal")) == 1  # noqa: PTH208
    refused = tipbench("sync")
    assert refused.status == 1
    monkeypatch.undo()
    monkeypatch.setenv("TIPBENCH_HOME", str(home))
    with MlflowServer.start(folder, port=port) as second:
        synced = tipbench("sync")
        assert synced.status == 0, synced.err
        assert "cells delivered" in synced.out
        _assert_each_cell_once(second.url)
        assert tipbench("sync").out == "Nothing waits to be delivered.\n"
    assert list((home / "journal").iterdir()) == []
