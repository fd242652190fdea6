"""The locks of a store of files: of the store as a whole, of each user, and of recovering after a power cut."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tipbench.core.files import make_private_folder
from tipbench.core.identity import text_digest
from tipbench.core.locks import WouldWait, lock_until, may_wait, try_lock
from tipbench.recommender.store import interface as store_interface
from tipbench.recommender.store.interface import locked_error

_USER_LOCKS = 1024
_RECOVERY_TIMEOUT_S = 60.0


class StoreLocks:
    """Locks on files, which hold across processes, and end with the process that holds them. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        self._folder = str(folder)
        self._thread_locks = [threading.Lock() for _ in range(_USER_LOCKS)]

    def try_store(self, shared: bool) -> int | None:
        """Lock the store as in use; return the open file, or None if that is not possible now."""
        file = self._open("store")
        if try_lock(file, shared):
            return file
        os.close(file)
        return None

    @contextmanager
    def user(self, user_id: str) -> Iterator[str]:
        """Hold the lock of a user, whose name is yielded: first among this process's threads, then among processes.

        Raises StoreUnreachable on a timeout, or WouldWait.
        """
        number = int(text_digest(user_id)[:8], 16) % _USER_LOCKS
        timeout_s, error = store_interface.LOCK_TIMEOUT_S, locked_error(user_id)
        until = time.monotonic() + timeout_s
        if not self._thread_locks[number].acquire(timeout=timeout_s if may_wait() else 0.0):
            raise error if may_wait() else WouldWait
        try:
            name = f"{number:04d}"
            with self._held(name, until, error):
                yield name
        finally:
            self._thread_locks[number].release()

    @contextmanager
    def recovery(self, shared: bool = False) -> Iterator[None]:
        """Hold the lock of recovering, shared to keep it off; raise StoreUnreachable on a timeout."""
        until, error = time.monotonic() + _RECOVERY_TIMEOUT_S, locked_error("the journals", _RECOVERY_TIMEOUT_S)
        with self._held("recovery", until, error, shared):
            yield

    @contextmanager
    def removals(self) -> Iterator[None]:
        """Hold the lock of the list of removals; raise StoreUnreachable on a timeout."""
        until = time.monotonic() + store_interface.LOCK_TIMEOUT_S
        with self._held("removals", until, locked_error("the list of removals")):
            yield

    @contextmanager
    def _held(self, name: str, until: float, error: Exception, shared: bool = False) -> Iterator[None]:
        file = self._open(name)
        try:
            if not lock_until(file, until, shared):
                raise error
            yield
        finally:
            os.close(file)

    def _open(self, name: str) -> int:
        return os.open(f"{self._folder}/{name}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
