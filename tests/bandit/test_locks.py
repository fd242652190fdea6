"""Locks that are waited for, and not for ever."""

import fcntl
import threading
import time
from pathlib import Path

import pytest

from tipbench.bandit.locks import wait_for_lock
from tipbench.errors import StoreUnreachable


def test_a_lock_that_is_given_back_in_time_is_had(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as holder, path.open() as waiter:
        fcntl.flock(holder, fcntl.LOCK_EX)
        threading.Timer(0.1, lambda: fcntl.flock(holder, fcntl.LOCK_UN)).start()
        wait_for_lock(waiter.fileno(), fcntl.LOCK_EX, "it", time.monotonic() + 20)
        with pytest.raises(BlockingIOError):
            fcntl.flock(holder, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_one_that_is_not_is_told_with_what_it_is_on(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as holder, path.open() as waiter:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(StoreUnreachable, match="somebody else has held it for 5 s; try again"):
            wait_for_lock(waiter.fileno(), fcntl.LOCK_SH, "it", time.monotonic())
