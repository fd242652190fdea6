"""Collections with the scripted engine, in processes of their own or not, and what they left in MLflow."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import httpx
import yaml

from tests.integration.command import tipbench
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.interface import StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, SUPERSEDED, stored_candidates, stored_runs
from tipbench.core.settings import Settings

UGLY = ('"\\ 😀🧪\x00\ud83d\x1b[31m\r\n\t\u202e…' * 2_000)[:20_000]
CELLS = 3 * 8  # of one repeat: all prompts of the built-in suite on all its scenarios


def collect_slowly(folder: Path, url: str, experiment: str, latency_s: float, repeats: int = 1) -> tuple[str, ...]:
    """The command's words."""
    script = folder / "slow.yaml"
    script.write_text(yaml.safe_dump({"parameters": 1_000_000_000, "latency_s": latency_s}))
    return (
        *("collect", "--models", f"scripted/{script}", "--repeats", str(repeats)),
        *("--experiment", experiment, "--mlflow-url", url),
    )


def started(command: tuple[str, ...], **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tipbench", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def wait_for_some_runs(url: str, experiment: str, count: int = 10) -> None:
    """Until a collection is in the middle of its cells."""
    api = f"{url}/api/2.0/mlflow"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = httpx.get(f"{api}/experiments/get-by-name", params={"experiment_name": experiment}).json()
        if "experiment" in found:
            ids = [found["experiment"]["experiment_id"]]
            runs = httpx.post(f"{api}/runs/search", json={"experiment_ids": ids}).json().get("runs", [])
            if len(runs) >= count:
                return
        time.sleep(0.1)
    raise AssertionError("the collection did not begin")


def all_and_counting(url: str, experiment: str) -> tuple[list[StoredRun], list[StoredRun]]:
    """All runs, and those that count."""
    store = open_store(url, Settings()).store
    try:
        found = store.experiment(experiment)
        return store.all_runs(found, {KIND: CELL}), stored_runs(store, found)
    finally:
        store.close()


def assert_each_cell_once(url: str, experiment: str, repeats: int = 1) -> None:
    """Every cell is one whole run, and there is no other: also none that is still open."""
    store = open_store(url, Settings()).store
    try:
        runs = store.all_runs(store.experiment(experiment), {KIND: CELL})
        for run in runs:
            assert len(stored_candidates(store, run).texts) == 5
            assert store.text(run, "raw.txt")
    finally:
        store.close()
    assert {run.status for run in runs} == {"FINISHED"}
    assert len(runs) == CELLS * repeats
    assert len({run.tags["tipbench.cell_key"] for run in runs}) == CELLS * repeats


def assert_two_hosts_at_once_count_once(folder: Path, url: str) -> None:
    """Two that fill one experiment on one server: of two answers the older counts, and the later is tagged."""
    experiment = "tip-bench-two"
    command = collect_slowly(folder, url, experiment, latency_s=0.1)
    hosts = [started(command, TIPBENCH_HOME=str(folder / host)) for host in ("here", "there")]
    said = []
    for process in hosts:
        out, err = process.communicate()
        assert process.returncode == 0, err
        said.append(out)
    every, counting = all_and_counting(url, experiment)
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
    exported = tipbench(
        *("judge", "--experiment", experiment, "--mlflow-url", url, "--export", str(folder / "judge.json"))
    )
    assert f"{CELLS} candidates" in exported.out, exported.out


def assert_an_ugly_answer_comes_back(folder: Path, url: str, kept_in: str) -> None:
    """20,000 characters that stores and protocols stumble over, as a file of the run or in its tags."""
    script = folder / "ugly.yaml"
    rules = [{"when": "", "answer": UGLY}]
    script.write_text(json.dumps({"parameters": 1_000_000_000, "rules": rules}), encoding="utf-8")
    done = tipbench(
        *("collect", "--models", f"scripted/{script}", "--prompts", "v1", "--n-scenarios", "1"),
        *("--experiment", "tip-bench-ugly", "--mlflow-url", url),
    )
    assert done.status == 0, done.err
    store = open_store(url, Settings()).store
    try:
        (run,) = stored_runs(store, store.experiment("tip-bench-ugly"))
        assert len(UGLY) == 20_000
        assert store.text(run, "raw.txt") == UGLY
        assert json.loads(run.tags["tipbench.text:raw.txt"])["kept_in"] == kept_in
        assert ("artifact:raw.txt" in run.tags) == (kept_in == "tags")
    finally:
        store.close()
