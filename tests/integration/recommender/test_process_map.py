"""Several processes at once."""

import os
import signal
from pathlib import Path

import pytest

from tipbench.core.errors import InvalidInput, SimulationFailed
from tipbench.recommender.simulation.process_map import process_map


def _square(number: int) -> int:
    if number == 13:
        raise InvalidInput("thirteen")
    if number == 77:
        return 1 // 0
    if number == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_every_task_is_done_once() -> None:
    found = list(process_map(_square, range(12), 3))
    assert sorted(found) == [(number, number * number) for number in range(12)]


def test_more_workers_than_tasks() -> None:
    assert list(process_map(_square, [5], 3)) == [(5, 25)]
    assert list(process_map(_square, [], 3)) == []


def test_an_error_of_ours_is_raised_here() -> None:
    with pytest.raises(InvalidInput, match="thirteen"):
        list(process_map(_square, range(10, 20), 2))


def test_an_error_that_nobody_foresaw_is_raised_here_with_where_it_happened() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        list(process_map(_square, range(76, 80), 2))
    assert "in _square" in raised.value.__notes__[0]


def test_a_worker_that_is_killed_is_told() -> None:
    with pytest.raises(SimulationFailed, match="was killed"):
        list(process_map(_square, [99, 1, 2, 3], 1))


def test_no_semaphore_is_made_that_a_killed_process_would_leave() -> None:
    """multiprocessing's own pools and queues make some."""
    going = process_map(_square, range(8), 2)
    next(going)
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert "/dev/shm/sem.mp-" not in mapped
    list(going)
