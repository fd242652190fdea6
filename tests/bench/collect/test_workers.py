"""Side by side: every task once, and no more at once than allowed."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.collect.loop import run_concurrently


def results(work: Callable[[int], int], tasks: Iterable[int], limit: int) -> list[int]:
    with ThreadPoolExecutor(20) as pool:
        return [result for arrived in run_concurrently(work, tasks, limit, pool) for result in arrived]


class Counter:
    """Work that counts how many do it at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, task: int) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.002)
        with self._lock:
            self.now -= 1
        return task


@settings(max_examples=25, deadline=None)
@given(count=st.integers(0, 40), at_once=st.integers(1, 9))
def test_every_task_is_done_once_and_never_too_many_at_once(count: int, at_once: int) -> None:
    work = Counter()
    assert sorted(results(work, range(count), at_once)) == list(range(count))
    assert work.most <= at_once


def test_it_is_really_side_by_side() -> None:
    work = Counter()
    results(work, range(40), 4)
    assert work.most > 1


def test_an_error_comes_out_when_nothing_is_running_any_more() -> None:
    work, found = Counter(), list[int]()

    def breaks(task: int) -> int:
        if task == 7:
            raise ValueError("seven")
        return work(task)

    with ThreadPoolExecutor(20) as pool:

        def run() -> None:
            for arrived in run_concurrently(breaks, range(100), 4, pool):
                found.extend(arrived)

        with pytest.raises(ValueError, match="seven"):
            run()
        assert work.now == 0
    assert {0, 1, 2, 3} <= {*found} <= {*range(20)} - {7}


class AtOnce(Executor):
    """Has done what is submitted when that returns, so all of it has arrived when somebody looks."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **options))
        except ValueError as error:
            future.set_exception(error)
        return future


def test_what_arrived_together_comes_together_and_before_an_error() -> None:
    def breaks(task: int) -> int:
        if task == 4:
            raise ValueError("four")
        return task

    running = run_concurrently(breaks, range(9), 3, AtOnce())
    assert [next(running), next(running)] == [[0, 1, 2], [3, 5]]
    with pytest.raises(ValueError, match="four"):
        next(running)


def test_who_stops_listening_does_not_wait_for_what_is_running() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        running = run_concurrently(lambda task: task if task == 0 else (free.wait(10), task)[1], range(9), 2, pool)
        assert next(running) == [0]
        started = time.monotonic()
        running.close()  # type: ignore[attr-defined]
        assert time.monotonic() - started < 5
        free.set()
