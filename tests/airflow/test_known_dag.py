"""Airflow reads the DAG's file some time after it was written, or can't."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.airflow.fake_airflow import DAG, FakeAirflow
from tipbench.airflow.known_dag import TIMEOUT_S, KnownDag, check_dag, known_dag, wait_until_known

POOLS = ["ollama_gpu1_11434", "ollama_gpu2_11434"]
TRACE = "Traceback (most recent call last):\n  File \"x\", line 1\nModuleNotFoundError: No module named 'tipbench'\n"


class Waiting:
    """A clock that goes on while somebody sleeps, with what happens meanwhile."""

    def __init__(self, airflow: FakeAirflow, after_s: float, happens: Callable[[FakeAirflow], None]) -> None:
        self.airflow, self.after_s, self.happens = airflow, after_s, happens
        self.now = 0.0
        self.told: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.after_s:
            self.happens(self.airflow)

    def wait(self, pools: list[str] | None, is_new: bool) -> KnownDag:
        return wait_until_known(self.airflow.api(), pools, is_new, self.told.append, lambda: self.now, self.sleep)


def _is_read(airflow: FakeAirflow) -> None:
    airflow.dag, airflow.dag_pools, airflow.errors = DAG, POOLS, []


def _fails(at: str) -> Callable[[FakeAirflow], None]:
    def happens(airflow: FakeAirflow) -> None:
        airflow.errors = [{"filename": "bench_collect.py", "timestamp": at, "stack_trace": TRACE}]

    return happens


def _nothing(_airflow: FakeAirflow) -> None:
    """It stays as it is."""


def test_a_dag_that_is_known_is_not_waited_for() -> None:
    waiting = Waiting(FakeAirflow(dag=DAG, dag_pools=POOLS), 0, _nothing)
    assert waiting.wait(POOLS, True).is_for(POOLS)
    assert (waiting.now, waiting.told) == (0, [])


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"dag": DAG, "dag_pools": ["ollama_localhost_11434"]},
        {"dag": {**DAG, "is_stale": True}, "dag_pools": POOLS},
    ],
    ids=["unknown", "for another host", "gone"],
)
def test_waits_until_airflow_has_read_the_file_and_says_so_once(before: dict[str, Any]) -> None:
    waiting = Waiting(FakeAirflow(**before), 20, _is_read)
    assert waiting.wait(POOLS, True).is_for(POOLS)
    assert 20 <= waiting.now < 25
    assert len(waiting.told) == 1


def test_waits_a_minute_and_no_longer() -> None:
    waiting = Waiting(FakeAirflow(), 0, _nothing)
    assert not waiting.wait(POOLS, True).is_for(POOLS)
    assert TIMEOUT_S <= waiting.now < TIMEOUT_S + 5


def test_an_error_ends_the_waiting() -> None:
    waiting = Waiting(FakeAirflow(), 10, _fails("12:00"))
    assert waiting.wait(POOLS, True).error == "ModuleNotFoundError: No module named 'tipbench'"
    assert waiting.now < 15


def test_an_error_of_the_file_before_does_not() -> None:
    airflow = FakeAirflow()
    _fails("11:00")(airflow)
    waiting = Waiting(airflow, 10, _is_read)
    assert waiting.wait(POOLS, True).is_for(POOLS)


def test_an_error_of_a_file_that_was_not_changed_does() -> None:
    airflow = FakeAirflow()
    _fails("11:00")(airflow)
    waiting = Waiting(airflow, 10, _is_read)
    assert waiting.wait(POOLS, False).error
    assert waiting.now == 0


def test_errors_of_other_files_are_not_ours() -> None:
    others = [{"filename": "my_bench_collect.py", "timestamp": "1", "stack_trace": TRACE}]
    assert known_dag(FakeAirflow(errors=others).api()).error == ""


@pytest.mark.parametrize(
    ("airflow", "said"),
    [
        (FakeAirflow(), "has not found bench_collect.py"),
        (FakeAirflow(dag={**DAG, "is_stale": True}, dag_pools=POOLS), "has not found bench_collect.py"),
        (FakeAirflow(dag=DAG, dag_pools=POOLS[:1]), "/dags/bench_collect.py"),
        (FakeAirflow(dag=DAG), "no Ollama host"),
        (FakeAirflow(dag={**DAG, "is_paused": True}, dag_pools=POOLS), "airflow dags unpause bench_collect"),
        (
            FakeAirflow(errors=[{"filename": "sub/bench_collect.py", "stack_trace": "Bad: \x1b[31m\n"}]),
            "can't read bench_collect.py: Bad: \\u001b",
        ),
        (FakeAirflow(errors=[{"filename": "bench_collect.py"}]), "it does not say why"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(airflow: FakeAirflow, said: str) -> None:
    wrong = [check for check in check_dag(known_dag(airflow.api()), POOLS) if check.good is False]
    assert len(wrong) == 1
    assert said in wrong[0].text


@pytest.mark.parametrize("odd", [None, "x", 7, ["x", None], {"a": 1}])
def test_answers_of_another_shape_are_no_traceback(odd: Any) -> None:
    known = known_dag(FakeAirflow(dag=DAG, dag_pools=POOLS, errors=odd).api())
    assert known.is_for(POOLS)


def test_without_expected_hosts_airflow_is_believed() -> None:
    (check,) = check_dag(known_dag(FakeAirflow(dag=DAG, dag_pools=POOLS).api()), None)
    assert check.good
    assert ", ".join(POOLS) in check.text
