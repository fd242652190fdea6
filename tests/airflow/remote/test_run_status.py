"""How far a run is, in words and figures, in every state that Airflow has for it."""

from typing import Any

import pytest

from tests.airflow.remote.stand_in import NOW_S, StandIn, a_task, exported, planned, story, told
from tipbench.airflow.remote.run_snapshot import SnapshotCache
from tipbench.airflow.remote.run_status import progress_of
from tipbench.server.jobs.progress import Progress

NOW_MS = round(NOW_S * 1000) + 20_000  # the tasks have begun 20 s ago


def seen(airflow: StandIn) -> Progress:
    return progress_of(SnapshotCache(airflow.calls(), lambda: NOW_S).of("r1"), "e", NOW_MS)


def with_models(airflow: StandIn, *states: str, **story_states: str | None) -> None:
    names = ["a", "bad", "c", "d", "e", "f", "g"][: len(states)]
    mapped = [a_task("collect", state, index) for index, state in enumerate(states)]
    airflow.add("r1", "running", *story(**{"plan": "success", **story_states}), *mapped)
    airflow.tell("plan", "planned", planned(*names, stored=5))


def test_queued(airflow: StandIn) -> None:
    airflow.add("r1", "queued", *story())
    assert (seen(airflow).phase, seen(airflow).experiment) == ("waiting", "e")
    assert "has not started it yet" in seen(airflow).message
    airflow.is_paused = True
    assert "bench_collect is paused" in seen(airflow).message


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (None, "waits for an Airflow worker"),
        ("queued", "waits for an Airflow worker"),
        ("running", "is being planned"),
        ("up_for_retry", "plan failed and is being retried: MLflow is away"),
    ],
)
def test_planning(airflow: StandIn, state: str | None, says: str) -> None:
    airflow.add("r1", "running", *story(plan=state))
    airflow.tell("plan", "problem", "MLflow is away")
    assert seen(airflow).phase == "starting"
    assert says in seen(airflow).message


def test_planned_and_not_begun(airflow: StandIn) -> None:
    airflow.add("r1", "running", *story(plan="success"), a_task("collect", None))
    assert (seen(airflow).phase, seen(airflow).message) == ("starting", "the run was planned")


def test_a_pool_that_is_taken_is_named(airflow: StandIn) -> None:
    with_models(airflow, "scheduled", "scheduled")
    assert seen(airflow).phase == "waiting"
    assert "pool ollama_h_1:" in seen(airflow).message
    airflow.tasks["r1"].append(a_task("collect_two", "scheduled", 0, pool="ollama_h_2", dag_run_id="r1"))
    assert "the pools ollama_h_1, ollama_h_2:" in seen(airflow).message
    with_models(airflow, "queued")
    assert seen(airflow).message == "waits for an Airflow worker"


def test_collecting_sums_up_all_models(airflow: StandIn) -> None:
    with_models(airflow, "success", "failed", "running", "scheduled")
    failure = {"cell": "bad × v1\x1b", "reason": "no answer"}
    airflow.tell("collect", "progress", told("a", 4, empty=1), 0)
    airflow.tell("collect", "progress", told("bad", 2, [failure]), 1)
    airflow.tell("collect", "problem", "the server ended", 1)
    airflow.tell("collect", "progress", told("c", 2), 2)
    found = seen(airflow)
    assert found.phase == "collect"
    assert found.message == "collecting: c; done: a; failed: bad; waiting: d"
    assert (found.cells, found.stored, found.done, found.failed, found.empty) == (16, 5, 8, 1, 1)
    assert found.current == "c × v1"
    assert found.eta_s == 20  # 8 cells in 20 s, 8 are left
    assert [(one.cell, one.reason) for one in found.failures] == [
        ("bad", "the server ended"),
        ("bad × v1\\u001b", "no answer"),
    ]


def test_before_the_first_cell_nobody_knows_how_long_it_takes(airflow: StandIn) -> None:
    with_models(airflow, "running")
    assert (seen(airflow).phase, seen(airflow).cells, seen(airflow).eta_s) == ("collect", 4, None)


def test_a_model_that_is_tried_again_is_told(airflow: StandIn) -> None:
    with_models(airflow, "up_for_retry")
    assert (seen(airflow).phase, seen(airflow).message) == ("collect", "to be tried again: a")


def test_what_the_tries_before_have_generated_counts(airflow: StandIn) -> None:
    """A task that is tried again has only what was left to do."""
    with_models(airflow, "success", "running")
    airflow.tell("collect", "progress", told("a", 1, cells=1, stored=3), 0)
    airflow.tell("collect", "progress", told("bad", 1, cells=2, stored=2), 1)
    found = seen(airflow)
    assert (found.cells, found.done) == (8, 7)
    assert found.eta_s == 10  # 2 cells in 20 s, 1 is left


@pytest.mark.parametrize(
    ("states", "phase", "says", "waiting"),
    [
        ({"export_for_judge": "running"}, "judge", "a batch is being made", 0),
        ({"export_for_judge": "success"}, "judge", "waits for an Airflow worker", 0),
        ({"export_for_judge": "success", "judge": "running"}, "judge", "person is at 8 items", 0),
        (
            {"export_for_judge": "success", "judge": "skipped", "wait_for_judge": "running"},
            "judge",
            "checks whether",
            8,
        ),
        (
            {"export_for_judge": "success", "judge": "skipped", "wait_for_judge": "awaiting_input"},
            "judge",
            "waits for the scores of batch b1",
            8,
        ),
        (
            {"export_for_judge": "success", "judge": "success", "wait_for_judge": "success"},
            "compare",
            "the scores are there",
            0,
        ),
        (
            {"export_for_judge": "success", "judge": "success", "wait_for_judge": "success", "compare": "running"},
            "compare",
            "",
            0,
        ),
    ],
)
def test_after_collecting(airflow: StandIn, states: dict[str, Any], phase: str, says: str, waiting: int) -> None:
    with_models(airflow, "success", "failed", **states)
    airflow.runs["r1"]["conf"] = {"judge": "model"}
    airflow.tell("export_for_judge", "return_value", exported())
    airflow.tell("wait_for_judge", "return_value", {"in_short": "the scores are there"})
    found = seen(airflow)
    assert (found.phase, found.waiting_items, found.eta_s, found.current) == (phase, waiting, None, "")
    assert says in found.message


def test_a_judge_waits_for_its_pool(airflow: StandIn) -> None:
    with_models(airflow, "success", export_for_judge="success", judge="scheduled")
    next(task for task in airflow.tasks["r1"] if task["task_id"] == "judge")["pool"] = "ollama_h_1"
    assert seen(airflow).message == "waits for a free slot of Airflow's pool ollama_h_1"


@pytest.mark.parametrize(
    ("state", "states", "phase"),
    [
        ("success", {"compare": "success"}, "done"),
        ("failed", {"compare": "success"}, "done"),
        ("failed", {"compare": "failed"}, "compare"),
        ("failed", {"wait_for_judge": "failed", "compare": "upstream_failed"}, "judge"),
        ("failed", {}, "collect"),
    ],
)
def test_at_the_end(airflow: StandIn, state: str, states: dict[str, Any], phase: str) -> None:
    with_models(airflow, "success", **states)
    airflow.runs["r1"]["state"] = state
    airflow.tell("collect", "progress", told("a", 4), 0)
    assert (seen(airflow).phase, seen(airflow).done) == (phase, 4)


def test_a_plan_that_failed_is_all_there_was(airflow: StandIn) -> None:
    airflow.add("r1", "failed", *story(plan="failed", compare="upstream_failed"), a_task("plan_gpu2_11434"))
    assert seen(airflow).phase == "starting"


def test_after_a_plan_that_failed_the_other_tasks_are_only_tidied_up(airflow: StandIn) -> None:
    airflow.add("r1", "running", *story(plan="failed", export_for_judge="running"))
    airflow.tell("plan", "problem", "models: gone")
    assert (seen(airflow).phase, seen(airflow).message) == ("starting", "models: gone")
    airflow.runs["r1"]["state"] = "failed"
    assert seen(airflow).phase == "starting"


@pytest.mark.parametrize(
    "odd",
    [
        None,
        5,
        "x",
        ["x"],
        {"done": -1, "cells": "many", "failed": True, "failures": 7, "current": ["x\x1b"]},
        {"done": 10**30, "failures": [5, {"cell": {}}]},
    ],
)
def test_what_a_task_tells_may_be_anything(airflow: StandIn, odd: Any) -> None:
    with_models(airflow, "running", export_for_judge="success")
    for task_id, key, index in (
        ("plan", "planned", -1),
        ("collect", "progress", 0),
        ("export_for_judge", "return_value", -1),
    ):
        airflow.tell(task_id, key, odd, index)
    found = seen(airflow)
    assert (found.done, found.cells, found.failed, found.waiting_items) == (0, 0, 0, 0)
    assert "\x1b" not in repr(found)
