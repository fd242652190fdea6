"""SQLite files that threads and processes share: whoever can't get at one within seconds is told so."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from tipbench.core.errors import DatabaseBusy, InvalidInput
from tipbench.core.files import private_file
from tipbench.core.locks import TimedLock

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


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction that has the file for itself from its beginning; what fails in it is rolled back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it
            connection.execute("ROLLBACK")
        raise


class ConnectionLock(TimedLock):
    """A lock for one connection; the thread that has it may take it again.

    Raises DatabaseBusy when another thread has it for too long, and instead of SQLite's error that a file is locked.
    """

    def __init__(self, path: Path, timeout_s: float = BUSY_S) -> None:
        super().__init__(timeout_s, lambda: database_busy(path))
        self._path = path

    def with_timeout(self, timeout_s: float) -> "ConnectionLock":
        """The same lock, for somebody who waits for another time."""
        other = ConnectionLock(self._path, timeout_s)
        other._lock = self._lock
        return other

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        super().__exit__(kind, error, where)
        if isinstance(error, sqlite3.OperationalError) and _is_busy(error):
            raise database_busy(self._path) from error


class Database:
    """A small file of our own with one connection, for its user alone; safe to be used by many threads.

    `schema` holds the statements that make the tables of this `version`.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self.path = path
        self._lock = ConnectionLock(path)
        try:
            self._connection = connect(private_file(path))
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from error
        try:
            with self._lock:
                enable_wal(self._connection)
                with transaction(self._connection):
                    self._make_tables(schema, version)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise _unusable(path, error) from error
            raise

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that stand for themselves."""
        with self._lock:
            yield self._connection

    @contextmanager
    def transaction(self, busy_s: float = BUSY_S) -> Iterator[sqlite3.Connection]:
        """A transaction that has the file for itself; raises DatabaseBusy if it does not get it in time."""
        with self._lock.with_timeout(busy_s):
            self._connection.execute(f"PRAGMA busy_timeout = {round(busy_s * 1000)}")
            with transaction(self._connection):
                yield self._connection

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _make_tables(self, schema: str, version: int) -> None:
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found > version:
            raise InvalidInput(
                f"{self.path} was made by a newer tipbench (version {found}, this one knows {version}); use that one, "
                "or move the file away"
            )
        if found == 0:
            for statement in filter(str.strip, schema.split(";")):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {version}")


def database_busy(path: Path) -> DatabaseBusy:
    return DatabaseBusy(f"{path} is in use, somebody else is writing to it; try again in a moment")


def _unusable(path: Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"{path} can't be used: {error}; move it away, and a new one is begun")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # an extended code has the plain one in its last byte
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
