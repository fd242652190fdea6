"""The runner as a whole: what it starts, what it shows, and what it leaves to Airflow."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.remote.stand_in import NOW_S, StandIn, a_task, exported, planned, story, told
from tests.airflow.remote.test_run_snapshot import Clock
from tests.bench.engines.stand_in import free_address
from tipbench.airflow.remote import open_runner
from tipbench.airflow.remote.runner import AirflowRunner, config_of
from tipbench.bench.options import Options, make_options
from tipbench.core.errors import InvalidInput, Problems, RunnerUnreachable
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import UnknownJob

OPTIONS = make_options({"models": "a,b", "mlflow_url": "http://mlflow:5000"})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def runner(airflow: StandIn, clock: Clock) -> Iterator[AirflowRunner]:
    numbers = count()
    made = AirflowRunner(airflow.calls(), None, clock, lambda: f"job{next(numbers)}")
    yield made
    made.close()


def test_a_run_is_begun_with_what_was_asked_for(runner: AirflowRunner, airflow: StandIn) -> None:
    job = runner.start(OPTIONS, retry_failed=True)
    assert (job.id, job.state, job.experiment) == ("job0", "queued", "tip-bench-auto")
    sent = next(json.loads(r.content) for r in airflow.requests if r.method == "POST" and "dagRuns" in r.url.path)
    assert (sent["dag_run_id"], sent["logical_date"]) == ("job0", None)
    assert (
        sent["conf"].items() >= {"models": "a,b", "retry_failed": True, "prompts": "v1,v2-mentor,v3-few-shot"}.items()
    )
    assert "fresh" not in sent["conf"]
    assert None not in sent["conf"].values()
    assert runner.job(runner.start(OPTIONS, fresh=True).id).links == {
        "Airflow": "http://air:8080/dags/bench_collect/runs/job1"
    }


def test_a_store_that_workers_can_not_see_is_refused(runner: AirflowRunner, airflow: StandIn) -> None:
    with pytest.raises(InvalidInput, match=r"--mlflow-url http://…"):
        runner.start(OPTIONS.model_copy(update={"mlflow_url": "sqlite:////home/me/mlflow.db"}))
    with pytest.raises(Problems, match="visible to others"):
        runner.start(OPTIONS.model_copy(update={"mlflow_url": "http://me:secret@mlflow"}))
    assert airflow.requests == []


def test_the_list_has_everybodys_runs(runner: AirflowRunner, airflow: StandIn) -> None:
    airflow.add("scheduled__2026-11-15T00:00:00+00:00", "success", *story(), created_s=0)
    airflow.add("failed", "failed", a_task("plan", "failed"), created_s=1)
    airflow.add("ended", "failed", created_s=2, note="cancelled by tipbench")
    airflow.add("partly", "failed", a_task("collect", "failed", 0, rendered_map_index="b"), a_task("compare"))
    airflow.runs["partly"]["run_after"] = airflow.runs["ended"]["run_after"].replace("42", "43")
    airflow.add("goes", "running", created_s=4, experiment="mine")
    airflow.add("waits", "queued", created_s=5)
    airflow.tell("plan", "problem", "models: there is no such model", run_id="failed")
    found = runner.jobs()
    assert [(job.id, job.state, job.exit_status) for job in found] == [
        ("waits", "queued", None),
        ("goes", "running", None),
        ("partly", "finished", 1),
        ("ended", "cancelled", None),
        ("failed", "failed", None),
        ("scheduled__2026-11-15T00:00:00+00:00", "finished", 0),
    ]
    assert found[4].message == "models: there is no such model"
    assert "b failed" in found[2].message
    assert found[1].experiment == "mine"
    assert [job.id for job in runner.jobs(limit=2, before_ms=found[1].created_ms)] == ["partly", "ended"]
    assert runner.job(found[-1].id).links["Airflow"].endswith("/runs/scheduled__2026-11-15T00%3A00%3A00%2B00%3A00")
    airflow.is_paused = True
    assert "paused" in runner.jobs(limit=1)[0].message


def test_one_job_says_the_same_as_the_list(runner: AirflowRunner, airflow: StandIn) -> None:
    airflow.add("partly", "failed", a_task("collect", "failed", 0), a_task("compare"), a_task("plan"))
    airflow.tell("plan", "planned", planned("gemma3:1b"), run_id="partly")
    airflow.tell("collect", "problem", "out of memory", 0, run_id="partly")
    job = runner.job("partly")
    assert (job.state, job.exit_status) == ("finished", 1)
    assert job.message.startswith("gemma3:1b failed: out of memory; everything else was compared")
    progress = runner.progress("partly")
    assert (progress.phase, progress.message) == ("done", job.message)


def test_a_look_at_a_job_takes_five_requests_at_most(runner: AirflowRunner, airflow: StandIn, clock: Clock) -> None:
    airflow.add(
        "r1", "running", *story(plan="success"), a_task("collect", "success", 0), a_task("collect", "running", 1)
    )
    airflow.tell("plan", "planned", planned("a", "b"))
    for index in (0, 1):
        airflow.tell("collect", "progress", told("ab"[index], 2), index)
        airflow.logs["r1", "collect", index, 1] = [{"event": "x", "level": "info"}]
    for _ in range(3):
        runner.progress("r1")
        runner.log("r1")
        clock.next()
    airflow.paths()
    assert (runner.job("r1").state, runner.progress("r1").done, runner.log("r1").count("x")) == ("running", 4, 2)
    assert len(airflow.paths()) <= 5


def test_where_the_judges_batch_is(runner: AirflowRunner, airflow: StandIn) -> None:
    airflow.add("r1", "running", *story(plan="success", export_for_judge="success"))
    airflow.tell("export_for_judge", "return_value", exported())
    assert runner.job("r1").links["The judge's batch in MLflow"] == "http://mlflow:5000/#/experiments/1/runs/r1"


def test_the_configuration_is_the_one_that_was_planned(runner: AirflowRunner, airflow: StandIn) -> None:
    """Of a run that Airflow's schedule began nothing else tells it: its conf is empty."""
    airflow.add("r1", "running", *story(plan="success"))
    options = {"experiment": "product-auto", "models": "ant:1b", "judge": "command", "temperature": 0.1}
    airflow.tell("plan", "planned", {**planned("ant:1b"), "options": options})
    job = runner.job("r1")
    assert (job.experiment, runner.progress("r1").experiment) == ("product-auto", "product-auto")
    assert options.items() <= job.config.items()


def test_cancelling(runner: AirflowRunner, airflow: StandIn) -> None:
    airflow.add("r1", "running", *story(plan="success"))
    assert not runner.job("r1").ended
    assert (runner.cancel("r1").state, airflow.runs["r1"]["note"]) == ("cancelled", "cancelled by tipbench")
    airflow.add("over", "success", *story())
    assert runner.cancel("over").state == "finished"
    assert airflow.runs["over"]["note"] is None
    with pytest.raises(UnknownJob):
        runner.cancel("nope")


def test_while_a_worker_is_at_it_the_cancelling_goes_on(runner: AirflowRunner, airflow: StandIn) -> None:
    airflow.add("r1", "failed", *story(plan="success"), a_task("collect", "running", 0), note="cancelled by tipbench")
    job = runner.job("r1")
    assert (job.state, job.cancelling, job.ended) == ("running", True, False)


@pytest.mark.parametrize("job_id", ["nope", "..", "a/b", "\x00"])
def test_jobs_that_are_not_there(runner: AirflowRunner, job_id: str) -> None:
    for ask in (runner.job, runner.progress, runner.log):
        with pytest.raises(UnknownJob):
            ask(job_id)


@pytest.mark.parametrize(
    ("conf", "shown"),
    [
        ({}, {}),
        ({"models": "x", "retry_failed": True, "unknown": "y"}, {"models": "x"}),
        ({"models": ["a", "b"], "n_tips": "many"}, {"models": "['a', 'b']", "n_tips": "many"}),
        ({"ollama_url": "http://me:secret@h:1"}, {"ollama_url": "http://h:1"}),
        ({"experiment": "x\x1b[2J"}, {"experiment": "x\\u001b[2J"}),
        ({"experiment": None, "judge": None, "diversity": True}, {"experiment": None, "diversity": True}),
    ],
)
def test_a_conf_is_shown_as_far_as_it_goes(conf: dict[str, Any], shown: dict[str, Any]) -> None:
    assert config_of(conf) == {**Options().model_dump(mode="json"), **shown}


def test_it_opens_while_airflow_is_away(tmp_path: Path) -> None:
    settings = Settings({"TIPBENCH_AIRFLOW_URL": free_address(), "TIPBENCH_AIRFLOW_TOKEN": "t"})
    for address in ("sqlite:///m.db", "http://mlflow:5000"):
        opened = open_runner(address, tmp_path, settings, lambda: NOW_S, lambda: "id")
        try:
            assert not opened.is_local
            with pytest.raises(RunnerUnreachable):
                opened.jobs()
        finally:
            opened.close()


def test_runs_that_say_little_are_listed_with_the_defaults_of_the_dags_file(
    runner: AirflowRunner, airflow: StandIn
) -> None:
    airflow.defaults = {"experiment": "tip-bench-weekly", "n_tips": 3, "ollama_url": "http://gpu1:11434"}
    airflow.add("ours", created_s=1, experiment="mine", n_tips=5)
    assert runner.jobs()[0].experiment == "mine"
    assert not any(path.endswith("/details") for path in airflow.paths()), "it says everything itself"
    airflow.add("scheduled", created_s=2)
    scheduled, ours = runner.jobs()
    assert (scheduled.experiment, scheduled.config["n_tips"]) == ("tip-bench-weekly", 3)
    assert scheduled.config["ollama_url"] == "http://gpu1:11434"
    assert (ours.experiment, ours.config["n_tips"]) == ("mine", 5)
    airflow.defaults = {"experiment": 7}
    assert runner.jobs()[0].experiment == "7"
