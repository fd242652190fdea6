"""Runs that wait for a judge go on when the scores are there, and the thread that sees to it never dies."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.airflow.remote.stand_in import StandIn, a_task, exported, moment, planned
from tipbench.airflow.remote.answers import AnswerThread
from tipbench.bench.records import Batch
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.batches import batch_runs, write_batch
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'm.db'}"


@pytest.fixture
def store(address: str) -> Iterator[RunStore]:
    opened = open_store(address, Settings({}), create=True).store
    experiment = opened.ensure_experiment("tip-bench-auto", {})
    for name in ("b1", "b2"):
        write_batch(opened, experiment, Batch(name, "person", False, 1, "digest", 0, "secret", ()), "tip", "rubric")
    yield opened
    opened.close()


def score(store: RunStore, name: str) -> None:
    experiment = store.experiment("tip-bench-auto")
    run = next(run for run in batch_runs(store, experiment) if run.tags["tipbench.batch"] == name)
    store.tag_run(experiment, run.run_id, {"tipbench.applied": "true"})


def waiting(airflow: StandIn, address: str, run_id: str = "r1", since_s: float = -60, **export: Any) -> None:
    task = a_task("wait_for_judge", "awaiting_input", start_date=moment(since_s))
    airflow.add(run_id, "running", task)
    airflow.questions.append({"created_at": moment(since_s), "task_instance": {**task, "dag_run_id": run_id}})
    airflow.tell("plan", "planned", planned("a", mlflow_url=address), run_id=run_id)
    airflow.tell("export_for_judge", "return_value", exported(**export), run_id=run_id)


def answers_of(airflow: StandIn, address: str, every_s: float = 10.0) -> AnswerThread:
    return AnswerThread(airflow.calls(), address, Settings({}), every_s)


def looked_twice(airflow: StandIn, address: str) -> list[str]:
    answers = answers_of(airflow, address)
    return [*answers.poll(), *answers.poll()]


def test_a_run_whose_batch_is_applied_is_answered(airflow: StandIn, address: str, store: RunStore) -> None:
    waiting(airflow, address)
    waiting(airflow, address, "r2", batch="b2")
    answers = answers_of(airflow, address)
    assert [*answers.poll(), *answers.poll()] == []
    score(store, "b1")
    airflow.paths()
    assert answers.poll() == ["r1"]
    assert airflow.paths() == ["GET /~/hitlDetails", "PATCH /r1/taskInstances/wait_for_judge/-1/hitlDetails"]
    assert airflow.answered == {"r1": {"chosen_options": ["The scores are applied"], "params_input": {"scores": ""}}}
    assert answers.poll() == []


def test_nobody_is_answered_at_once(airflow: StandIn, address: str, store: RunStore) -> None:
    """Nor when it asks again, which it does every few minutes."""
    score(store, "b1")
    waiting(airflow, address)
    answers = answers_of(airflow, address)
    assert answers.poll() == []
    airflow.questions[0]["task_instance"]["queued_when"] = moment(300)
    assert answers.poll() == []
    assert answers.poll() == ["r1"]


@pytest.mark.parametrize("elsewhere", ["http://evil:5000", "sqlite:////etc/passwd", "", None])
def test_what_is_kept_elsewhere_is_left_alone(
    airflow: StandIn, address: str, store: RunStore, elsewhere: str | None
) -> None:
    score(store, "b1")
    waiting(airflow, elsewhere)  # type: ignore[arg-type]
    assert looked_twice(airflow, address) == []


@pytest.mark.parametrize("odd", [None, {}, "x", {"batch": None}, {"batch": "b9", "experiment": "none"}])
def test_an_export_of_another_kind_is_no_reason_to_answer(
    airflow: StandIn, address: str, store: RunStore, odd: Any
) -> None:
    score(store, "b1")
    waiting(airflow, address)
    airflow.tell("export_for_judge", "return_value", odd)
    assert looked_twice(airflow, address) == []


def test_somebody_was_quicker(airflow: StandIn, address: str, store: RunStore) -> None:
    score(store, "b1")
    waiting(airflow, address)
    taken = httpx.Response(409, json={"detail": "Human-in-the-loop detail has already been updated"})
    airflow.fault = lambda request: taken if request.method == "PATCH" else None
    assert looked_twice(airflow, address) == []


class _Turns:
    """Lets a test wait until the thread has looked so many times."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = threading.Condition()

    def __call__(self, request: httpx.Request) -> None:
        if request.url.path.endswith("hitlDetails") and request.method == "GET":
            with self.changed:
                self.count += 1
                self.changed.notify_all()

    def wait(self, more: int) -> None:
        with self.changed:
            wanted = self.count + more
            assert self.changed.wait_for(lambda: self.count >= wanted, 10)


def test_it_goes_on_whatever_happens_and_says_it_once(
    airflow: StandIn, address: str, store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    turns = _Turns()

    def away(request: httpx.Request) -> httpx.Response:
        turns(request)
        return (
            httpx.Response(503)
            if request.url.path != "/auth/token"
            else httpx.Response(201, json={"access_token": "t"})
        )

    def broken(request: httpx.Request) -> httpx.Response | None:
        turns(request)
        raise ZeroDivisionError("a bug")

    def there(request: httpx.Request) -> None:
        turns(request)

    airflow.fault = away
    score(store, "b1")
    waiting(airflow, address)
    answers = answers_of(airflow, address, every_s=0.01)
    with caplog.at_level(logging.INFO):
        answers.start()
        try:
            turns.wait(4)
            airflow.fault = broken
            turns.wait(2)
            airflow.fault = there
            turns.wait(3)
        finally:
            answers.close()
    assert sum("is temporarily unavailable" in record.message for record in caplog.records) == 1
    assert any("run r1 continues" in record.message for record in caplog.records)
    assert airflow.questions == []


def test_closing_does_not_wait_for_the_next_turn(airflow: StandIn, address: str) -> None:
    answers = answers_of(airflow, address, every_s=3600)
    answers.start()
    answers.close()
    assert airflow.requests == []
