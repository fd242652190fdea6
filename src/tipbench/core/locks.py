"""Locks between processes (on files) and between threads. Waiting is bounded, or announced to the user."""

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
from tipbench.core.text import capital

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0002, 0.008
_thread = threading.local()


class WouldWait(Exception):
    """A lock is taken, on a thread that must not wait for it. Nothing was done."""


@contextmanager
def no_waiting() -> Iterator[None]:
    """Say that this thread must not wait for locks, because others wait for it: an event loop's."""
    _thread.may_wait = False
    try:
        yield
    finally:
        _thread.may_wait = True


def may_wait() -> bool:
    """Return whether this thread may wait for a lock. Where it may not, WouldWait is raised instead."""
    return getattr(_thread, "may_wait", True)


def try_lock(file: int | IO[str] | IO[bytes], shared: bool = False) -> bool:
    """Lock an open file without waiting; return False if it is locked. Closing it or ending the process releases it."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)


def lock_until(file: int, deadline: float, shared: bool = False) -> bool:
    """Lock an open file whose holder may be frozen; return False at the deadline, which is on the monotonic clock.

    Raises WouldWait on a thread that must not wait. Polls with pauses that grow up to a limit: many waiters polling
    without pauses would take the processor from the holder, and with long pauses the last holder would get the lock
    again before the others.
    """
    pause_s = _FIRST_PAUSE_S
    while not try_lock(file, shared):
        if not may_wait():
            raise WouldWait
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, 1.5 * pause_s)
    return True


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file, which is created if needed; wait for as long as it takes."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive(path: Path, activity: str, wait: bool, notify: Callable[[str], None]) -> Iterator[IO[str]]:
    """Hold the lock and yield its file. `activity` describes what the current holder of the lock is doing.

    Raises LockTaken if another process holds it and `wait` is false.
    """
    make_private_folder(path.parent)
    with path.open("a+", encoding="utf-8") as lock:
        if not try_lock(lock):
            if not wait:
                raise LockTaken(f"{activity}; without --no-wait, this command would wait for it")
            notify(f"{capital(activity)}; waiting until it is done (Ctrl-C to stop) …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


class TimedLock:
    """A reentrant lock between threads that raises an exception instead of waiting for ever."""

    def __init__(self, timeout_s: float, make_error: Callable[[], Exception]) -> None:
        self._timeout_s = timeout_s
        self._make_error = make_error
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._timeout_s):
            raise self._make_error()

    def __exit__(self, _kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self._lock.release()
