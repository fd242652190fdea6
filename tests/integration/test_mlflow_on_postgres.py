"""An MLflow server on PostgreSQL, as a team would run one: what is stored and told is the same as on SQLite.

Texts are kept in tags here, so that the database gets everything that a model wrote.
"""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.tracking.store_contract import StoreContract
from tests.integration import hostile_answers as hostile
from tests.integration.collecting import (
    all_and_counting,
    assert_an_ugly_answer_comes_back,
    assert_each_cell_once,
    assert_two_hosts_at_once_count_once,
    collect_slowly,
    started,
    wait_for_some_runs,
)
from tests.integration.command import tipbench
from tests.integration.filling import fill
from tests.integration.mlflow_server import MlflowServer
from tests.integration.postgres_server import PostgresServer
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.mlflow_client import MlflowClient
from tipbench.bench.tracking.runs import stored_candidates
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings

_OF_THE_MOMENT = {"gen/wall_s", "wall_s", "ram/own_bytes_peak"}  # what it took, which is never the same twice


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """At its end, no test made it fail where it should have stored or refused."""
    with (
        PostgresServer.start() as postgres,
        MlflowServer.start(tmp_path_factory.mktemp("server"), artifacts="file", database=postgres.url) as server,
    ):
        yield server
        log = server.log.read_text(errors="replace")
    assert not re.search(r'" 5\d\d ', log), log[-5_000:]


class TestThePromisesOfTheStore(StoreContract):
    @pytest.fixture
    def store(self, server: MlflowServer) -> Iterator[RunStore]:
        store = RunStore(MlflowClient(server.url, Settings({})))
        yield store
        store.close()

    @pytest.fixture
    def experiment(self, store: RunStore, request: pytest.FixtureRequest) -> Experiment:
        return store.ensure_experiment(f"tip-bench {request.node.name}", {})


def _whole_path(url: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Collected, judged by rules and by a person, compared: what then is stored, and what is told."""
    common = ("--experiment", "tip-bench-path", "--mlflow-url", url)
    folder.mkdir()
    (folder / "model.yaml").write_text("parameters: 1000000000\n")
    file = folder / "judge.json"
    for words in (
        ("collect", "--models", "scripted/model.yaml,scripted/other", "--n-scenarios", "2"),
        ("judge", "--run", "lexical"),
        ("judge", "--export", str(file), "--seed", "3"),
    ):
        done = tipbench(*words, *common, cwd=folder)
        assert done.status == 0, done.err
    fill(file)
    applied = tipbench("judge", "--apply", str(file), *common)
    assert applied.status == 0, applied.err
    compared = tipbench("compare", "--format", "json", *common)
    assert compared.status == 0, compared.err
    runs, _ = all_and_counting(url, "tip-bench-path")
    return {run.tags["tipbench.cell_key"]: _as_data(run) for run in runs}, _settled(json.loads(compared.out))


def _as_data(run: StoredRun) -> dict[str, Any]:
    """Without how the texts are kept, which is known to differ."""
    tags = {key: value for key, value in run.tags.items() if not key.startswith(("artifact:", "tipbench.text:"))}
    notes = {key: json.loads(value)["sha256"] for key, value in run.tags.items() if key.startswith("tipbench.text:")}
    judges = {
        key: {**json.loads(tags.pop(key)), "batch": ""} for key in list(tags) if key.startswith("tipbench.judge:")
    }
    told = {"status": run.status, "tags": tags, "texts": notes, "judges": judges, "params": run.params}
    settled: dict[str, Any] = _settled({**told, "metrics": run.metrics, "steps": run.steps})
    return settled


def _settled(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _settled(value) for key, value in data.items() if key not in _OF_THE_MOMENT}
    return [_settled(entry) for entry in data] if isinstance(data, list) else data


def test_the_whole_path_stores_and_tells_the_same_as_on_sqlite(server: MlflowServer, tmp_path: Path) -> None:
    stored, told = _whole_path(server.url, tmp_path / "there")
    assert len(stored) == 2 * 3 * 2
    assert told["cells"] == {"judged": 12, "pending": 0, "failed": 0, "missing": 0}
    assert (stored, told) == _whole_path(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path / "here")


def test_nothing_of_a_long_and_ugly_answer_is_lost(server: MlflowServer, tmp_path: Path) -> None:
    assert_an_ugly_answer_comes_back(tmp_path, server.url, kept_in="tags")


def test_hostile_texts_lose_no_cell_and_are_judged(server: MlflowServer, tmp_path: Path) -> None:
    common = ("--experiment", hostile.EXPERIMENT, "--mlflow-url", server.url)
    done = tipbench("collect", "--models", hostile.hostile_model(tmp_path), "--prompts", "v1", *common)
    assert (done.status, "7 cells answered" in done.out) == (1, True), done.out + done.err  # one was told to fail
    _, counting = all_and_counting(server.url, hostile.EXPERIMENT)
    assert sorted(run.status for run in counting) == ["FAILED", *["FINISHED"] * 7]
    store = open_store(server.url, Settings()).store
    try:
        raw = {store.text(run, "raw.txt") for run in counting}
        found = {text for run in counting if run.status == "FINISHED" for text in stored_candidates(store, run).texts}
    finally:
        store.close()
    assert raw == {None, hostile.RAW, *(json.dumps(answer) for answer in hostile.ANSWERS)}
    assert len(found) >= len(hostile.TEXTS)
    file = tmp_path / "judge.json"
    for words in (("judge", "--run", "lexical"), ("judge", "--export", str(file))):
        assert tipbench(*words, *common).status == 0
    fill(file)
    applied = tipbench("judge", "--apply", str(file), "--accept-drift", "a \x00 and \ud83d " + "W" * 9_000, *common)
    assert applied.status == 0, applied.err
    board = json.loads(tipbench("compare", "--format", "json", *common).out)
    assert (board["cells"]["judged"], board["cells"]["pending"], board["cells"]["failed"]) == (7, 0, 1)


@pytest.mark.timeout(120)
def test_on_two_hosts_every_cell_counts_once(server: MlflowServer, tmp_path: Path) -> None:
    assert_two_hosts_at_once_count_once(tmp_path, server.url)


@pytest.mark.timeout(120)
def test_killed_in_the_middle_and_started_again_every_cell_is_there_once(server: MlflowServer, tmp_path: Path) -> None:
    command = collect_slowly(tmp_path, server.url, "tip-bench-killed", latency_s=0.1)
    first = started(command)
    wait_for_some_runs(server.url, "tip-bench-killed", count=8)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL, "it was in the middle"
    done = tipbench(*command)
    assert done.status == 0, done.err
    assert_each_cell_once(server.url, "tip-bench-killed")
