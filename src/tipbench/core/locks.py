"""Locks: on files, between processes, and between threads; waiting has a limit, or says what it waits for."""

import fcntl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO

from tipbench.core.errors import LockTaken
from tipbench.core.files import make_private_folder

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0002, 0.008


def try_lock(file: int | IO[str], shared: bool = False) -> bool:
    """Lock an open file if nobody else has; the lock ends when the file is closed, or with the process."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_until(file: int, deadline: float, shared: bool = False) -> bool:
    """Lock an open file whose holder may be frozen; returns False at the deadline, which is on the monotonic clock.

    Pauses grow to a limit: many who look without a pause take the processor from the one who has the lock, and after
    long pauses, whoever just had it gets it again before others.
    """
    pause_s = _FIRST_PAUSE_S
    while not try_lock(file, shared):
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, 1.5 * pause_s)
    return True


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file, which is created if need be; waits for as long as it takes."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive(path: Path, activity: str, wait: bool, notify: Callable[[str], None]) -> Iterator[IO[str]]:
    """Hold the lock and yield its file. `activity` says what another process that has it is doing.

    Raises LockTaken if somebody has it and `wait` is false.
    """
    make_private_folder(path.parent)
    with path.open("a+", encoding="utf-8") as lock:
        if not try_lock(lock):
            if not wait:
                raise LockTaken(f"{activity}; without --no-wait this one would wait its turn")
            notify(f"{activity[0].upper()}{activity[1:]}; waiting until it is done (Ctrl-C to stop) …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


class TimedLock:
    """A lock between threads that raises instead of waiting for ever; the thread that has it may take it again."""

    def __init__(self, timeout_s: float, timed_out: Callable[[], Exception]) -> None:
        self._timeout_s = timeout_s
        self._timed_out = timed_out
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._timeout_s):
            raise self._timed_out()

    def __exit__(self, _kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self._lock.release()
