"""Side by side: every task once, and no more at once than allowed."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.collect.loop import run_concurrently


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
    assert sorted(run_concurrently(work, range(count), at_once)) == list(range(count))
    assert work.most <= at_once


def test_it_is_really_side_by_side() -> None:
    work = Counter()
    list(run_concurrently(work, range(40), 4))
    assert work.most > 1


def test_an_error_comes_out_and_no_thread_is_left() -> None:
    def breaks(task: int) -> int:
        if task == 3:
            raise ValueError("three")
        return task

    with pytest.raises(ValueError, match="three"):
        list(run_concurrently(breaks, range(100), 4))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("generate")]
