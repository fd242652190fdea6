"""SQLite files that threads and processes share: whoever can't get at one within seconds is told so."""

import sqlite3
import threading
import time
from pathlib import Path
from types import TracebackType

from tipbench.errors import DatabaseBusy

BUSY_S = 5.0  # that somebody waits for a file that is locked


def connect(path: Path, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """Open a file for all threads; transactions are begun and ended by the caller. Use it under a ConnectionLock."""
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)


def enable_wal(connection: sqlite3.Connection, busy_s: float = BUSY_S) -> None:
    """Switch the file to write-ahead logging, so that readers and the writer do not wait for each other.

    SQLite's own timeout does not cover this switch: of two processes that open a new file together, one fails at once.
    """
    deadline = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class ConnectionLock:
    """A lock for one connection; the thread that has it may take it again.

    Raises DatabaseBusy when another thread has it for too long, and instead of SQLite's error that a file is locked.
    """

    def __init__(self, path: Path, patience_s: float = BUSY_S) -> None:
        self._path = path
        self._patience_s = patience_s
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._patience_s):
            raise database_busy(self._path)

    def waited_for(self, patience_s: float) -> "ConnectionLock":
        """The same lock, for somebody with another patience."""
        other = ConnectionLock(self._path, patience_s)
        other._lock = self._lock
        return other

    def __exit__(self, _kind: type | None, error: BaseException | None, _where: TracebackType | None) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.OperationalError) and _is_busy(error):
            raise database_busy(self._path) from error


def database_busy(path: Path) -> DatabaseBusy:
    return DatabaseBusy(f"{path} is in use, somebody else is writing to it; try again in a moment")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # an extended code has the plain one in its last byte
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
