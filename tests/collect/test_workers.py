"""Side by side: every task once, no more at once than allowed, and fewer when the engine says that it is busy."""

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.collect.workers import Throttle, side_by_side
from tipbench.errors import EngineBusy, GenerationFailed


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
    assert sorted(side_by_side(work, range(count), at_once)) == list(range(count))
    assert work.most <= at_once


def test_it_is_really_side_by_side() -> None:
    work = Counter()
    list(side_by_side(work, range(40), 4))
    assert work.most > 1


def test_an_error_comes_out_and_no_thread_is_left() -> None:
    def breaks(task: int) -> int:
        if task == 3:
            raise ValueError("three")
        return task

    with pytest.raises(ValueError, match="three"):
        list(side_by_side(breaks, range(100), 4))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("generate")]


def test_a_busy_engine_is_asked_less_and_left_alone_as_long_as_it_wants() -> None:
    pauses: list[float] = []
    throttle = Throttle(8, sleep=pauses.append)
    answers: Iterator[EngineBusy | str] = iter([EngineBusy("busy", 3.0), EngineBusy("busy", None), "an answer"])

    def work() -> str:
        answer = next(answers)
        if isinstance(answer, EngineBusy):
            raise answer
        return answer

    assert throttle.run(work) == "an answer"
    assert pauses == [3.0, 1.0]
    assert (throttle.limit, throttle.lowest) == (2, 2)
    for _ in range(40):
        throttle.run(lambda: "fine")
    assert throttle.limit == 8, "it finds its way back"


def test_an_engine_that_stays_busy_is_a_failure_with_a_reason() -> None:
    def busy() -> str:
        raise EngineBusy("busy", None)

    with pytest.raises(GenerationFailed, match="busy 10 times"):
        Throttle(4, sleep=lambda _: None).run(busy)
