"""Kill it anywhere, take MLflow away: every cell is there once, and nothing that was generated is lost."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from tests.integration.collecting import assert_each_cell_once, collect_slowly, wait_for_some_runs
from tests.integration.command import tipbench, tipbench_process
from tests.integration.mlflow_server import MlflowServer
from tests.integration.relay import Relay, relay
from tipbench.bench.collect import delivery

EXPERIMENT = "tip-bench-kill"


@pytest.fixture
def server(mlflow: MlflowServer) -> Iterator[Relay]:
    """The way to an MLflow server, which can be cut: it then comes back at the same address, with what it held."""
    with relay(mlflow.url) as made:
        yield made


@pytest.mark.timeout(240)
def test_killed_ten_times_at_random_moments_every_cell_is_there_once(tmp_path: Path, home: Path) -> None:
    url = f"sqlite:///{tmp_path / 'mlflow.db'}"
    command = collect_slowly(tmp_path, url, EXPERIMENT, latency_s=0.02, repeats=12)
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
    assert_each_cell_once(url, EXPERIMENT, repeats=12)
    assert list((home / "journal").iterdir()) == []


@pytest.mark.timeout(240)
def test_mlflow_that_goes_away_in_the_middle_and_comes_back_gets_everything_once(
    server: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE_S", 120.0)  # on a busy machine it is slow to come back

    def leave_in_the_middle_and_come_back() -> None:
        wait_for_some_runs(server.url, "tip-bench-back", 5)
        server.leave()
        time.sleep(1)
        server.come_back()

    traveller = threading.Thread(target=leave_in_the_middle_and_come_back)
    traveller.start()
    done = tipbench(*collect_slowly(tmp_path, server.url, "tip-bench-back", latency_s=0.1))
    traveller.join()
    assert done.status == 0, done.err
    assert "MLflow was unreachable" in done.out
    assert_each_cell_once(server.url, "tip-bench-back")


@pytest.mark.timeout(240)
def test_mlflow_that_stays_away_gets_everything_by_sync(
    server: Relay, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE_S", 1.0)  # it does not come back, however long one waits
    monkeypatch.setattr(delivery.Delivery.finish, "__defaults__", (1.0, inf))

    def stop_in_the_middle() -> None:
        wait_for_some_runs(server.url, EXPERIMENT, 5)
        server.leave()

    stopper = threading.Thread(target=stop_in_the_middle)
    stopper.start()
    done = tipbench(*collect_slowly(tmp_path, server.url, EXPERIMENT, latency_s=0.1))
    stopper.join()
    assert done.status == 1
    assert "tipbench sync" in done.out
    assert len(os.listdir(home / "journal")) == 1  # noqa: PTH208
    refused = tipbench("sync")
    assert refused.status == 1
    monkeypatch.undo()
    monkeypatch.setenv("TIPBENCH_HOME", str(home))
    server.come_back()
    synced = tipbench("sync")
    assert synced.status == 0, synced.err
    assert "cells delivered" in synced.out
    assert_each_cell_once(server.url, EXPERIMENT)
    assert tipbench("sync").out == "Nothing is left to deliver.\n"
    assert list((home / "journal").iterdir()) == []
