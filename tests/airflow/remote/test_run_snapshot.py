"""A run is looked at with few requests, however many ask and however long it takes."""

import threading
from typing import Any

import httpx
import pytest

from tests.airflow.remote.stand_in import NOW_S, StandIn, a_task, planned, story, told
from tipbench.airflow.remote.records import PLAN, PLANNED, PROGRESS, Task
from tipbench.airflow.remote.run_snapshot import FRESH_FOR_S, Moments
from tipbench.server.jobs.interface import UnknownJob


class Clock:
    def __init__(self) -> None:
        self.now = NOW_S

    def __call__(self) -> float:
        return self.now

    def next(self) -> None:
        self.now += FRESH_FOR_S + 0.1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def moments(airflow: StandIn, clock: Clock) -> Moments:
    return Moments(airflow.calls(), clock)


def collecting(airflow: StandIn, *states: str, run: str = "running", **more: Any) -> None:
    names = [f"m{index}" for index in range(len(states))]
    mapped = [a_task("collect", state, index) for index, state in enumerate(states)]
    airflow.add("r1", run, *story(plan="success"), *mapped, **more)
    airflow.tell("plan", "planned", planned(*names))
    for index, name in enumerate(names):
        airflow.tell("collect", "progress", told(name, 1), map_index=index)


def progress_asked(airflow: StandIn) -> int:
    return sum("xcomEntries/progress" in path for path in airflow.paths())


def test_within_a_second_nobody_asks_again(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    collecting(airflow, "running")
    first = moments.of("r1")
    airflow.paths()
    assert moments.of("r1") is first
    assert airflow.paths() == []
    clock.next()
    assert moments.of("r1") is not first
    assert airflow.paths() == ["GET /r1", "GET /r1/taskInstances", "GET /r1/taskInstances/collect/xcomEntries/progress"]


def test_a_clock_that_was_set_back_keeps_nobody_waiting(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    collecting(airflow, "running")
    moments.of("r1")
    airflow.paths()
    clock.now -= 3600
    moments.of("r1")
    assert len(airflow.paths()) == 3


def test_what_a_task_has_told_by_its_end_is_read_once(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    collecting(airflow, "success", "running")
    moments.of("r1")
    clock.next()
    airflow.tell("collect", "progress", told("m1", 3), map_index=1)
    airflow.paths()
    seen = moments.of("r1")
    assert progress_asked(airflow) == 1
    assert seen.table(Task("collect", 1), PROGRESS)["done"] == 3
    assert seen.table(Task("collect", 0), PROGRESS)["done"] == 1
    assert seen.table(seen.task(PLAN), PLANNED)["to_do"] == 8


def test_many_that_run_at_once_take_turns(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    collecting(airflow, *["running"] * 30)
    moments.of("r1")
    assert progress_asked(airflow) < 20
    for index in range(30):
        airflow.tell("collect", "progress", told("later", 3), map_index=index)
    for _ in range(10):
        clock.next()
        seen = moments.of("r1")
        assert progress_asked(airflow) <= 4
    assert all(seen.table(Task("collect", index), PROGRESS)["done"] == 3 for index in range(30))


def test_a_run_that_has_ended_is_read_whole_and_then_left_alone(
    airflow: StandIn, moments: Moments, clock: Clock
) -> None:
    collecting(airflow, *["success"] * 10, run="success")
    seen = moments.of("r1")
    assert all(seen.table(Task("collect", index), PROGRESS) for index in range(10))
    clock.next()
    airflow.paths()
    assert moments.of("r1") is seen
    assert airflow.paths() == ["GET /r1"]
    collecting(airflow, "running")  # somebody has cleared it in Airflow
    clock.next()
    assert moments.of("r1").run.state == "running"


def test_a_task_that_is_tried_again_tells_anew(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    collecting(airflow, "failed")
    moments.of("r1")
    airflow.tasks["r1"][-1] |= {"state": "running", "try_number": 2}
    airflow.tell("collect", "progress", told("m0", 2), map_index=0)
    clock.next()
    assert moments.of("r1").table(Task("collect", 0), PROGRESS)["done"] == 2


def test_models_have_their_names_from_the_plan(airflow: StandIn, moments: Moments) -> None:
    collecting(airflow, "success", "running", "scheduled")
    assert [task.label for task in moments.of("r1").tasks if task.id == "collect"] == ["m0", "m1", "m2"]


@pytest.mark.parametrize("odd", [None, [], "x", {"models": 5}, {"models": ["x", {}, {"model": 1, "task_id": []}]}])
def test_a_plan_of_another_kind_names_nobody(airflow: StandIn, moments: Moments, odd: Any) -> None:
    collecting(airflow, "running")
    airflow.tell("plan", "planned", odd)
    assert [task.label for task in moments.of("r1").tasks if task.id == "collect"] == [""]


def test_one_asks_and_the_others_have_what_is_known(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    collecting(airflow, "running")
    known = moments.of("r1")
    clock.next()
    asked, go_on = threading.Event(), threading.Event()

    def slow(_: httpx.Request) -> None:
        asked.set()
        assert go_on.wait(10)

    airflow.fault = slow
    airflow.paths()
    thread = threading.Thread(target=moments.of, args=("r1",))
    thread.start()
    assert asked.wait(10)
    assert moments.of("r1") is known
    go_on.set()
    thread.join()
    assert len(airflow.paths()) == 3


def test_runs_that_are_not_there_are_not_remembered(airflow: StandIn, moments: Moments) -> None:
    with pytest.raises(UnknownJob):
        moments.of("r1")
    airflow.add("r1", "queued")
    assert moments.of("r1").run.state == "queued"


def test_a_queued_run_knows_whether_the_dag_is_paused(airflow: StandIn, moments: Moments, clock: Clock) -> None:
    airflow.add("r1", "queued")
    assert not moments.of("r1").is_paused
    airflow.is_paused = True
    clock.next()
    assert moments.of("r1").is_paused


def test_what_was_forgotten_is_asked_for_at_once(airflow: StandIn, moments: Moments) -> None:
    collecting(airflow, "running")
    moments.of("r1")
    airflow.runs["r1"]["state"] = "failed"
    moments.forget("r1")
    assert moments.of("r1").run.state == "failed"
