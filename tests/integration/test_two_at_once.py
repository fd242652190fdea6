"""Two collections of one experiment at the same time, on one host or on two: every cell counts once."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.integration.command import tipbench
from tests.integration.mlflow_server import MlflowServer
from tipbench.settings import Settings
from tipbench.tracking.address import open_store
from tipbench.tracking.interface import StoredRun
from tipbench.tracking.runs import CELL, KIND, SUPERSEDED, stored_runs

CELLS = 3 * 8


def _start(tmp_path: Path, url: str, *flags: str, **environment: str) -> subprocess.Popen[str]:
    script = tmp_path / "slow.yaml"
    script.write_text(yaml.safe_dump({"parameters": 1_000_000_000, "latency_s": 0.1}))
    command = ("collect", "--models", f"scripted/{script}", "--experiment", "tip-bench-two", "--mlflow-url", url)
    return subprocess.Popen(
        [sys.executable, "-m", "tipbench", *command, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def _runs(url: str) -> tuple[list[StoredRun], list[StoredRun]]:
    """All runs, and those that count."""
    store = open_store(url, Settings()).store
    try:
        experiment = store.experiment("tip-bench-two")
        return store.every_run(experiment, {KIND: CELL}), stored_runs(store, experiment)
    finally:
        store.close()


@pytest.mark.timeout(120)
def test_on_one_host_the_second_waits_and_finds_everything_done(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    processes = [_start(tmp_path, url) for _ in range(2)]
    said = []
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        said.append(out + err)
    assert sum("another collection is filling experiment 'tip-bench-two'" in text.lower() for text in said) == 1
    assert sorted("24 stored before" in text for text in said) == [False, True]
    every, counting = _runs(url)
    assert len(every) == len(counting) == CELLS


@pytest.mark.timeout(120)
def test_whoever_would_not_wait_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    first = _start(tmp_path, url)
    assert first.stderr is not None
    first.stderr.readline()  # it is at work
    second = _start(tmp_path, url, "--no-wait")
    _, err = second.communicate()
    first.communicate()
    assert (first.returncode, second.returncode) == (0, 2)
    assert "without --no-wait this one would wait its turn" in err
    assert len(_runs(url)[0]) == CELLS


@pytest.mark.timeout(240)
def test_on_two_hosts_the_older_answer_counts_and_the_later_is_tagged(tmp_path: Path) -> None:
    with MlflowServer.start(tmp_path / "server") as server:
        hosts = [_start(tmp_path, server.url, TIPBENCH_HOME=str(tmp_path / host)) for host in ("here", "there")]
        said = []
        for process in hosts:
            out, err = process.communicate()
            assert process.returncode == 0, err
            said.append(out)
        every, counting = _runs(server.url)
        keys = Counter(run.tags["tipbench.cell_key"] for run in every)
        assert len(keys) == len(counting) == CELLS
        twice = {key for key, count in keys.items() if count == 2}
        assert twice, "both were at work at the same time"
        live = [run for run in every if SUPERSEDED not in run.tags]
        assert Counter(run.tags["tipbench.cell_key"] for run in live) == Counter(keys.keys())
        for run in live:
            same = [other for other in every if other.tags["tipbench.cell_key"] == run.tags["tipbench.cell_key"]]
            assert run.started_ms == min(other.started_ms for other in same)
        assert any("generated elsewhere at the same time" in text for text in said)
        file = tmp_path / "judge.json"
        common = ("--experiment", "tip-bench-two", "--mlflow-url", server.url)
        exported = tipbench("judge", *common, "--export", str(file))
        assert f"{CELLS * 5} candidates" in exported.out, exported.out
