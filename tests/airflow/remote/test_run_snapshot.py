"""A run is looked at with few requests, however many ask and however long it takes."""

import threading
from typing import Any

import httpx
import pytest

from tests.airflow.remote.stand_in import NOW_S, StandIn, a_task, planned, story, told
from tipbench.airflow.remote.records import PLAN, PLANNED, PROGRESS, Task
from tipbench.airflow.remote.run_snapshot import FRESH_FOR_S, SnapshotCache
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
def snapshots(airflow: StandIn, clock: Clock) -> SnapshotCache:
    return SnapshotCache(airflow.calls(), clock)


def collecting(airflow: StandIn, *states: str, run: str = "running", **more: Any) -> None:
    names = [f"m{index}" for index in range(len(states))]
    mapped = [a_task("collect", state, index) for index, state in enumerate(states)]
    airflow.add("r1", run, *story(plan="success"), *mapped, **more)
    airflow.tell("plan", "planned", planned(*names))
    for index, name in enumerate(names):
        airflow.tell("collect", "progress", told(name, 1), map_index=index)


def progress_asked(airflow: StandIn) -> int:
    return sum("xcomEntries/progress" in path for path in airflow.paths())


def test_within_a_second_nobody_asks_again(airflow: StandIn, snapshots: SnapshotCache, clock: Clock) -> None:
    collecting(airflow, "running")
    first = snapshots.of("r1")
    airflow.paths()
    assert snapshots.of("r1") is first
    assert airflow.paths() == []
    clock.next()
    assert snapshots.of("r1") is not first
    assert airflow.paths() == ["GET /r1", "GET /r1/taskInstances", "GET /r1/taskInstances/collect/xcomEntries/progress"]


def test_a_clock_that_was_set_back_keeps_nobody_waiting(
    airflow: StandIn, snapshots: SnapshotCache, clock: Clock
) -> None:
    collecting(airflow, "running")
    snapshots.of("r1")
    airflow.paths()
    clock.now -= 3600
    snapshots.of("r1")
    assert len(airflow.paths()) == 3


def test_what_a_task_has_told_by_its_end_is_read_once(airflow: StandIn, snapshots: SnapshotCache, clock: Clock) -> None:
    collecting(airflow, "success", "running")
    snapshots.of("r1")
    clock.next()
    airflow.tell("collect", "progress", told("m1", 3), map_index=1)
    airflow.paths()
    seen = snapshots.of("r1")
    assert progress_asked(airflow) == 1
    assert seen.mapping(Task("collect", 1), PROGRESS)["done"] == 3
    assert seen.mapping(Task("collect", 0), PROGRESS)["done"] == 1
    assert seen.mapping(seen.task(PLAN), PLANNED)["to_do"] == 8


def test_many_that_run_at_once_take_turns(airflow: StandIn, snapshots: SnapshotCache, clock: Clock) -> None:
    collecting(airflow, *["running"] * 30)
    snapshots.of("r1")
    assert progress_asked(airflow) < 20
    for index in range(30):
        airflow.tell("collect", "progress", told("later", 3), map_index=index)
    for _ in range(10):
        clock.next()
        seen = snapshots.of("r1")
        assert progress_asked(airflow) <= 4
    assert all(seen.mapping(Task("collect", index), PROGRESS)["done"] == 3 for index in range(30))


def test_a_run_that_has_ended_is_read_whole_and_then_left_alone(
    airflow: StandIn, snapshots: SnapshotCache, clock: Clock
) -> None:
    collecting(airflow, *["success"] * 10, run="success")
    seen = snapshots.of("r1")
    assert all(seen.mapping(Task("collect", index), PROGRESS) for index in range(10))
    clock.next()
    airflow.paths()
    assert snapshots.of("r1") is seen
    assert airflow.paths() == ["GET /r1"]
    collecting(airflow, "running")  # somebody has cleared it in Airflow
    clock.next()
    assert snapshots.of("r1").run.state == "running"


def test_a_task_that_is_tried_again_tells_anew(airflow: StandIn, snapshots: SnapshotCache, clock: Clock) -> None:
    collecting(airflow, "failed")
    snapshots.of("r1")
    airflow.tasks["r1"][-1] |= {"state": "running", "try_number": 2}
    airflow.tell("collect", "progress", told("m0", 2), map_index=0)
    clock.next()
    assert snapshots.of("r1").mapping(Task("collect", 0), PROGRESS)["done"] == 2


def test_models_have_their_names_from_the_plan(airflow: StandIn, snapshots: SnapshotCache) -> None:
    collecting(airflow, "success", "running", "scheduled")
    assert [task.label for task in snapshots.of("r1").tasks if task.id == "collect"] == ["m0", "m1", "m2"]


@pytest.mark.parametrize("odd", [None, [], "x", {"models": 5}, {"models": ["x", {}, {"model": 1, "task_id": []}]}])
def test_a_plan_of_another_kind_names_nobody(airflow: StandIn, snapshots: SnapshotCache, odd: Any) -> None:
    collecting(airflow, "running")
    airflow.tell("plan", "planned", odd)
    assert [task.label for task in snapshots.of("r1").tasks if task.id == "collect"] == [""]


def test_one_asks_and_the_others_have_what_is_known(airflow: StandIn, snapshots: SnapshotCache, clock: Clock) -> None:
    collecting(airflow, "running")
    known = snapshots.of("r1")
    clock.next()
    asked, go_on = threading.Event(), threading.Event()

    def slow(_: httpx.Request) -> None:
        asked.set()
        assert go_on.wait(10)

    airflow.fault = slow
    airflow.paths()
    thread = threading.Thread(target=snapshots.of, args=("r1",))
    thread.start()
    assert asked.wait(10)
    assert snapshots.of("r1") is known
    go_on.set()
    thread.join()
    assert len(airflow.paths()) == 3


def test_runs_that_are_not_there_are_not_remembered(airflow: StandIn, snapshots: SnapshotCache) -> None:
    with pytest.raises(UnknownJob):
        snapshots.of("r1")
    airflow.add("r1", "queued")
    assert snapshots.of("r1").run.state == "queued"


def test_a_queued_run_knows_whether_the_dag_is_paused(airflow: StandIn, snapshots: SnapshotCache, clock: Clock) -> None:
    airflow.add("r1", "queued")
    assert not snapshots.of("r1").is_paused
    airflow.is_paused = True
    clock.next()
    assert snapshots.of("r1").is_paused


def test_what_was_forgotten_is_asked_for_at_once(airflow: StandIn, snapshots: SnapshotCache) -> None:
    collecting(airflow, "running")
    snapshots.of("r1")
    airflow.runs["r1"]["state"] = "failed"
    snapshots.forget("r1")
    assert snapshots.of("r1").run.state == "failed"
