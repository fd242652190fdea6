"""The DAG on a real Airflow: what it stores, what it says, and what it survives."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.airflow_server import DAG, VENV, AirflowServer, Task
from tests.integration.command import tipbench_process
from tests.integration.filling import filled
from tests.integration.mlflow_server import MlflowServer
from tests.integration.ollama_hosts import OllamaHost
from tests.integration.serving import serving
from tipbench.airflow.hosts import pool_name
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.batches import batch_file
from tipbench.bench.tracking.interface import StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, stored_cell
from tipbench.core.settings import Settings

pytestmark = [pytest.mark.timeout(240), pytest.mark.skipif(not VENV.exists(), reason="'make airflow' installs it")]

_DAG_FILE = """from tipbench.airflow.dag import bench_collect
dag = bench_collect("{}", "{}", retries=1, retry_delay_s=1)
"""
_MODELS = {"ant:1b": 1_000_000_000, "bee:1b": 1_100_000_000}


@dataclass(frozen=True)
class Bench:
    """Airflow, MLflow and two Ollama hosts, the second with a model that the first has not."""

    airflow: AirflowServer
    mlflow: MlflowServer
    hosts: tuple[OllamaHost, OllamaHost]
    folder: Path

    def script(self, name: str, **script: Any) -> str:
        """A scripted model."""
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps({"parameters": 1_000_000_000, **script}))
        return f"scripted/{path}"

    def every_cell(self, experiment: str) -> list[StoredRun]:
        """All that count, doubles too."""
        store = open_store(self.mlflow.url, Settings()).store
        try:
            runs = store.runs(store.experiment(experiment), {KIND: CELL})
            return [run for run in runs if "tipbench.superseded" not in run.tags]
        finally:
            store.close()

    def file_at(self, experiment: str, run_id: str) -> dict[str, Any]:
        """The judge's file in an MLflow run."""
        store = open_store(self.mlflow.url, Settings()).store
        try:
            (run,) = [one for one in store.runs(store.experiment(experiment), {}) if one.run_id == run_id]
            return batch_file(store, run)
        finally:
            store.close()


@pytest.fixture(scope="module")
def bench(mlflow: MlflowServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("airflow")
    here, there = OllamaHost(_MODELS, 0.05), OllamaHost({**_MODELS, "eel:3b": 3_000_000_000}, 0.05)
    with here, there:
        environment = {"MLFLOW_TRACKING_URI": mlflow.url, "TIPBENCH_HOME": str(folder / "worker")}
        (folder / "airflow").mkdir()
        with AirflowServer.start(folder / "airflow", _DAG_FILE.format(here.url, there.url), environment) as airflow:
            made = tipbench_process("airflow", "init", **airflow.for_tipbench, MLFLOW_TRACKING_URI=mlflow.url)
            assert made.status == 0, made.out + made.err
            yield Bench(airflow, mlflow, (here, there), folder)


def overlaps(tasks: list[Task]) -> list[tuple[Task, Task]]:
    return [
        (one, other)
        for one, other in itertools.combinations(tasks, 2)
        if str(one.started) < str(other.ended) and str(other.started) < str(one.ended)
    ]


def test_models_one_at_a_time_and_a_person_who_judges(bench: Bench) -> None:
    airflow = bench.airflow
    models = [bench.script(f"slow-{letter}", latency_s=0.2) for letter in "ab"]
    conf = {"models": ",".join(models), "prompts": "v1", "n_scenarios": 2, "experiment": "tip-bench-person"}
    run = airflow.trigger(conf)
    airflow.until_task(run, "wait_for_judge", "awaiting_input")
    collects = airflow.tasks(run, "collect")
    assert [task.model for task in sorted(collects, key=lambda task: task.map_index)] == models
    assert {task.pool for task in collects} == {pool_name(bench.hosts[0].url)}
    assert overlaps(collects) == []
    assert [task.id for task in airflow.tasks(run) if task.state == "running"] == [], "a worker is held"
    assert airflow.states(run)["judge"] == "skipped"
    exported = airflow.xcom(run, "export_for_judge")
    assert exported["uri"] == f"runs:/{exported['run_id']}/judge.json"
    file = bench.file_at("tip-bench-person", exported["run_id"])
    assert (file["batch"], len(file["items"])) == (exported["batch"], exported["items"])
    assert airflow.question(run)["params"]["scores"]["schema"]["type"] == ["null", "string"], "it may be left empty"
    told = "items are not filled in"
    applied = "The scores are applied"
    airflow.answer(run, applied, json.dumps(file), lambda: told in airflow.log(run, "wait_for_judge"))
    airflow.answer(run, applied, json.dumps(filled(file)), lambda: airflow.states(run)["wait_for_judge"] == "success")
    airflow.until(run, "success")
    compared = airflow.xcom(run, "compare")
    assert compared["missing"] == {}
    assert "Next: " in compared["in_short"]
    assert len(bench.every_cell("tip-bench-person")) == 4


def test_models_spread_over_two_hosts_never_two_on_one(bench: Bench) -> None:
    airflow = bench.airflow
    models = [*_MODELS, "eel:3b"]
    run = airflow.trigger(
        {"models": ",".join(models), "n_scenarios": 2, "experiment": "tip-bench-hosts", "judge": "lexical"}
    )
    airflow.until(run, "success")
    here, there = bench.hosts
    assert (here.most_loaded, there.most_loaded) == (1, 1)
    assert set(here.answered).isdisjoint(there.answered)
    assert {*here.answered, *there.answered} == set(models)
    assert "eel:3b" in there.answered, "the first host does not have it"
    assert len(here.answered) >= 2
    cells = [stored_cell(one) for one in bench.every_cell("tip-bench-hosts")]
    assert len(cells) == len({cell.key for cell in cells}) == 3 * 3 * 2
    lanes = [task for task in airflow.tasks(run) if task.id.startswith("collect")]
    by_pool = {pool: [task for task in lanes if task.pool == pool] for pool in {task.pool for task in lanes}}
    assert set(by_pool) == {pool_name(here.url), pool_name(there.url)}
    assert all(overlaps(tasks) == [] for tasks in by_pool.values())
    assert overlaps(lanes) != [], "both hosts work at the same time"


@pytest.fixture(scope="module")
def client(bench: Bench) -> Iterator[httpx.Client]:
    """Of `tipbench serve`, whose runs happen on Airflow."""
    settings = {
        "TIPBENCH_RUNNER": "airflow",
        "TIPBENCH_HOME": str(bench.folder / "server"),
        **bench.airflow.for_tipbench,
    }
    with serving("--mlflow-url", bench.mlflow.url, **settings) as served, served.client() as made:
        yield made


def job_when(client: httpx.Client, job_id: str, there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        job: dict[str, Any] = client.get(f"/api/jobs/{job_id}").raise_for_status().json()
        if there(job):
            return job
        time.sleep(0.5)
    raise AssertionError(job)


def test_over_our_api_judged_on_our_side_with_a_model_that_fails(bench: Bench, client: httpx.Client) -> None:
    bad = bench.script("sick", rules=[{"when": "", "fail": "the runner died"}])
    config = {"models": f"scripted/fine,{bad}", "prompts": "v1", "n_scenarios": 2, "experiment": "tip-bench-api"}
    job = client.post("/api/bench/run", json=config).raise_for_status().json()
    waiting = job_when(client, job["id"], lambda job: job["progress"]["phase"] == "judge")
    waiting = job_when(client, job["id"], lambda job: job["progress"]["waiting_items"] > 0)
    assert waiting["state"] == "running"
    assert (waiting["progress"]["cells"], waiting["progress"]["failed"]) == (4, 2)
    assert waiting["links"]["Airflow"] == f"{bench.airflow.url}/dags/{DAG}/runs/{job['id']}"
    batch = client.post("/api/judging/next", json={"experiment": config["experiment"]}).json()["batch"]["batch"]
    assert batch == bench.airflow.xcom(job["id"], "export_for_judge")["batch"], "the one that Airflow exported"
    file = client.get(f"/api/judging/batches/{batch}").json()
    client.post(f"/api/judging/batches/{batch}/scores", json=filled(file)).raise_for_status()
    ended = job_when(client, job["id"], lambda job: job["ended_ms"] is not None)
    assert (ended["state"], ended["exit_status"]) == ("finished", 1)
    assert bad in ended["message"]
    states = bench.airflow.states(job["id"])
    assert (states["collect[scripted/fine]"], states[f"collect[{bad}]"]) == ("success", "failed")
    assert (states["compare"], states["complete"]) == ("success", "upstream_failed")
    assert bench.airflow.state(job["id"]) == "failed", "it never looks green with cells missing"
    (problem,) = bench.airflow.problems(job["id"])
    assert f"2 of 2 cells of {bad} failed, the first with: the runner died" in problem
    assert [task.tries for task in bench.airflow.tasks(job["id"], "collect") if task.model == bad] == [2]
    assert bench.airflow.xcom(job["id"], "compare")["missing"] == {bad: 2}
    assert "scripted/fine: 2 cells answered" in ended["log"]
    assert client.get("/api/bench/leaderboard/tip-bench-api").json()["cells"]["judged"] == 2


def test_a_run_that_is_cancelled_leaves_no_model_loaded(bench: Bench, client: httpx.Client) -> None:
    host = bench.hosts[0]
    host.answered.clear()
    host.latency_s = 1.0  # so long that it can not be finished before it is cancelled
    config = {"models": "ant:1b", "ollama_url": host.url, "unload": "model", "experiment": "tip-bench-cancelled"}
    job = client.post("/api/bench/run", json=config).raise_for_status().json()
    job_when(client, job["id"], lambda job: job["progress"]["done"] > 1)
    assert host.loaded == ["ant:1b"]
    assert client.post(f"/api/jobs/{job['id']}/cancel").status_code == 202
    ended = job_when(client, job["id"], lambda job: job["ended_ms"] is not None)
    host.latency_s = 0.3
    assert ended["state"] == "cancelled"
    bench.airflow.wait(lambda: host.loaded == [], "told that the task has ended")  # with its next heartbeat
    stored, answered = len(bench.every_cell("tip-bench-cancelled")), host.answered["ant:1b"]
    assert answered - 1 <= stored <= answered < 24, "all but the answer that was on its way are stored"


def test_a_conf_that_can_not_be_run_is_refused_before_any_generation(bench: Bench, client: httpx.Client) -> None:
    airflow, large = bench.airflow, bench.script("large", parameters=7_000_000_000)
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"modles": "scripted/a"}, "modles: unknown key; did you mean models?"),
        (
            {"models": f"scripted/a,{large}"},
            f"{large}: 7.00 billion parameters (by its metadata) is over the limit of 4",
        ),
    ]
    usual = {"models": "scripted/a", "experiment": "tip-bench-refused"}
    runs = [airflow.trigger({**usual, **conf}) for conf, _ in refusals]
    told_little = airflow.trigger({"models": large})
    listed = {job["id"]: job for job in client.get("/api/jobs").json()["jobs"]}
    assert listed[told_little]["experiment"] == "tip-bench-auto"
    assert listed[told_little]["config"]["ollama_url"] == f"{bench.hosts[0].url},{bench.hosts[1].url}", "the DAG's own"
    for run, (_, told) in zip(runs, refusals, strict=True):
        airflow.until(run, "failed")
        (problem,) = airflow.problems(run)
        assert told in problem
        assert [task.tries for task in airflow.tasks(run, "plan")] == [1], "trying again does not help"
    store = open_store(bench.mlflow.url, Settings()).store
    assert store.find_experiment("tip-bench-refused") is None
    store.close()


def test_a_wrong_type_is_refused_on_triggering(bench: Bench) -> None:
    answer = bench.airflow.ask(
        "POST", f"/dags/{DAG}/dagRuns", {"logical_date": None, "conf": {"n_tips": "many", "models": "scripted/a"}}
    )
    assert answer.status_code == 400
    assert "Invalid input for param n_tips: 'many' is not of type 'integer'" in answer.json()["detail"]


def test_the_scheduler_killed_and_a_task_cleared_every_cell_once(bench: Bench) -> None:
    airflow, host = bench.airflow, bench.hosts[0]
    host.answered.clear()
    host.latency_s = 0.3
    conf = {"models": "ant:1b,bee:1b", "ollama_url": host.url, "experiment": "tip-bench-killed", "judge": "lexical"}
    run = airflow.trigger(conf)
    airflow.wait(lambda: sum(host.answered.values()) >= 8, "generating")
    airflow.kill("scheduler")
    airflow.bring_up("scheduler")
    host.latency_s = 0.0
    airflow.until(run, "success")
    keys = [stored_cell(one).key for one in bench.every_cell("tip-bench-killed")]
    assert len(keys) == len(set(keys)) == 2 * 3 * 8
    assert host.most_loaded == 1
    generated = sum(host.answered.values())
    airflow.clear(run, ["collect", 0])
    airflow.wait(lambda: airflow.tasks(run, "compare")[0].tries == 2, "comparing again")
    airflow.until(run, "success")
    assert sum(host.answered.values()) == generated, "what is stored is not generated again"
    assert sorted(keys) == sorted(stored_cell(one).key for one in bench.every_cell("tip-bench-killed"))
    assert airflow.xcom(run, "compare")["missing"] == {}
