"""The calls: pages, moments, replies that are lost, and answers that no Airflow should give."""

import httpx
import pytest

from tests.airflow.remote.stand_in import NOW_S, StandIn, a_task, story
from tipbench.airflow.remote.client import AirflowError, AirflowUnreachable
from tipbench.airflow.remote.records import Task
from tipbench.core.errors import InvalidInput
from tipbench.server.jobs.interface import UnknownJob

NOW_MS = round(NOW_S * 1000)


class _Lost:
    """Loses the reply to the first run that is begun; `taken`: Airflow has begun it all the same."""

    def __init__(self, airflow: StandIn, taken: bool, every_time: bool = False) -> None:
        self.airflow = airflow
        self.taken = taken
        self.every_time = every_time
        airflow.fault = self

    def __call__(self, request: httpx.Request) -> httpx.Response | None:
        if request.method != "POST" or request.url.path == "/auth/token":
            return None
        if not self.every_time:
            self.airflow.fault = None
        if self.taken:
            self.airflow.add("mine", "queued")
        raise httpx.ReadTimeout("nothing came")


@pytest.mark.parametrize("taken", [True, False])
def test_a_lost_reply_begins_no_second_run(airflow: StandIn, taken: bool) -> None:
    _Lost(airflow, taken)
    airflow.calls().start_run("mine", {"models": "a"})
    assert list(airflow.runs) == ["mine"]


def test_an_airflow_that_stays_away_is_told(airflow: StandIn) -> None:
    _Lost(airflow, taken=False, every_time=True)
    with pytest.raises(AirflowUnreachable):
        airflow.calls().start_run("mine", {})
    assert airflow.paths() == ["POST ", "POST "]


def test_without_the_dag_it_says_how_to_get_it(airflow: StandIn) -> None:
    missing = httpx.Response(404, json={"detail": "Dag with dag_id: 'bench_collect' not found"})
    airflow.fault = lambda request: None if request.url.path == "/auth/token" else missing
    with pytest.raises(InvalidInput, match="tipbench airflow init"):
        airflow.calls().start_run("mine", {})
    with pytest.raises(AirflowError, match="tipbench airflow init"):
        airflow.calls().newest_runs(10, None)


@pytest.mark.parametrize("run_id", ["nope", "..", "", "a/b", "\ud800\x1b"])
def test_a_run_that_is_not_there(airflow: StandIn, run_id: str) -> None:
    with pytest.raises(UnknownJob, match="there is no job") as caught:
        airflow.calls().run(run_id)
    assert "\x1b" not in str(caught.value)


def test_the_newest_come_first_in_pages_that_fit_together(airflow: StandIn) -> None:
    for number in range(230):
        airflow.add(f"r{number}", "success", created_s=number * 0.0107)
    calls = airflow.calls()
    assert [run.id for run in calls.newest_runs(3, None)] == ["r229", "r228", "r227"]
    assert len(calls.newest_runs(200, None)) == 200
    found, before = [], None
    while page := calls.newest_runs(50, before):
        found += [run.id for run in page]
        before = page[-1].created_ms
    assert found == [f"r{number}" for number in reversed(range(230))]


@pytest.mark.parametrize("before_ms", [10**30, -(10**30)])
def test_a_moment_that_is_none(airflow: StandIn, before_ms: int) -> None:
    with pytest.raises(InvalidInput, match="is not a valid time"):
        airflow.calls().newest_runs(10, before_ms)


def test_all_tasks_are_found_however_many(airflow: StandIn) -> None:
    airflow.add("r1", "running", *story(), *(a_task("collect", "running", index) for index in range(250)))
    assert len(airflow.calls().tasks("r1")) == 256


def test_what_decided_failed_runs_is_asked_for_together(airflow: StandIn) -> None:
    airflow.add("one", "failed", a_task("collect", "failed", 1), a_task("compare"), a_task("plan"), created_s=0)
    airflow.add("two", "failed", a_task("plan", "failed"), created_s=5)
    airflow.add("other", "success", a_task("compare"), created_s=3)
    calls = airflow.calls()
    found = calls.decisive_tasks([calls.run("one"), calls.run("two")])
    assert {run_id: [task.id for task in tasks] for run_id, tasks in found.items()} == {
        "one": ["collect", "compare"],
        "two": ["plan"],
    }
    asked = airflow.requests[-1].url.params
    assert (asked["run_after_gte"], asked["run_after_lte"]) == (
        "2026-11-15T20:36:40+00:00",
        "2026-11-15T20:36:45.001000+00:00",
    )


def test_what_was_never_told_is_nothing(airflow: StandIn) -> None:
    airflow.add()
    airflow.tell("collect", "progress", {"done": 3}, map_index=1)
    calls = airflow.calls()
    assert calls.xcom("r1", Task("collect", 1), "progress") == {"done": 3}
    assert calls.xcom("r1", Task("collect", 0), "progress") is None


def test_cancelling_leaves_a_note(airflow: StandIn) -> None:
    airflow.add()
    airflow.calls().cancel("r1")
    assert (airflow.runs["r1"]["state"], airflow.runs["r1"]["note"]) == ("failed", "cancelled by tipbench")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"dag_runs": 5},
        {"dag_runs": [{"dag_run_id": "x"}]},
        {"dag_runs": ["x"]},
        {"dag_runs": [{"dag_run_id": "x", "state": "queued", "run_after": "yesterday"}]},
        {"dag_runs": [{"dag_run_id": "x", "state": "queued", "run_after": 5}]},
    ],
)
def test_another_airflow_is_told_and_no_traceback(airflow: StandIn, answer: object) -> None:
    airflow.fault = lambda request: None if request.url.path == "/auth/token" else httpx.Response(200, json=answer)
    with pytest.raises(AirflowError, match=r"tested with Airflow 3\.3"):
        airflow.calls().newest_runs(10, None)
