"""SQLite files shared by threads and processes; waiting for a locked one ends with DatabaseBusy after seconds."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from tipbench.core.errors import DatabaseBusy, InvalidInput
from tipbench.core.files import private_file
from tipbench.core.locks import TimedLock

BUSY_S = 5.0  # how long to wait for a locked file
_MAGIC = b"SQLite format 3\0"
_COARSEST_TICK_NS = 2_000_000_000  # of a file's times: FAT has two seconds


def connect(path: Path, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """Open a connection that all threads may use, under a ConnectionLock; the caller begins and ends transactions."""
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)


def is_database(file: BufferedReader) -> bool:
    """Return whether this file, opened just now, is a SQLite database, by how it begins."""
    return file.peek(len(_MAGIC)).startswith(_MAGIC)


def copy_database(source: Path, target: Path) -> None:
    """Copy a database that others may be writing to, as it is at one moment, and check the copy.

    In one step, so that no write in between starts it over; with write-ahead logging nobody waits meanwhile. Raises
    InvalidInput if the database is damaged or can't be copied.
    """
    existing = f"file:{quote(str(source))}?mode=rw"
    try:
        with closing(sqlite3.connect(existing, uri=True)) as original, closing(connect(target)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            original.backup(copy)
            (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise InvalidInput(f"{source} can't be copied: {error}") from error
        found = str(error)
    if found != "ok":
        raise InvalidInput(
            f"{source} is damaged ({found.splitlines()[-1]}), so it can't be copied; move it away, or restore a backup"
        )


def enable_wal(connection: sqlite3.Connection, busy_s: float = BUSY_S) -> None:
    """Switch the file to write-ahead logging, so that readers and the writer do not block each other.

    SQLite's own timeout does not cover this switch: of two processes opening a new file together, one fails at once.
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


def file_stamp(path: Path, now_ns: Callable[[], int] = time.time_ns) -> str | None:
    """Return a value that is different after every write to the database, by any process; None if it can't tell.

    It consists of the files' identities, sizes and times, so another process can compare it long after. Times are
    coarse: of two writes in one tick, the second would not show. So there is no stamp within two seconds of a write.
    The write-ahead log comes first: what was committed before, and is not in the log any more, is in the database file.
    """
    found: list[int] = []
    for file in (path.with_name(f"{path.name}-wal"), path):
        try:
            status = file.stat()
        except OSError:
            if file is path:
                return None
            continue
        if status.st_size == 0 and file is not path:  # as a connection creates it before its first write
            continue
        last_ns = max(status.st_mtime_ns, status.st_ctime_ns)
        if now_ns() - last_ns < _COARSEST_TICK_NS:
            return None
        found += [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return "/".join(map(str, found))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run a transaction that locks the file for writing from the start; roll it back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
            connection.execute("ROLLBACK")
        raise


class ConnectionLock(TimedLock):
    """A reentrant lock for one connection.

    Raises DatabaseBusy if another thread holds it for too long, and in place of SQLite's "database is locked" error.
    """

    def __init__(self, path: Path, timeout_s: float = BUSY_S) -> None:
        super().__init__(timeout_s, lambda: database_busy(path))
        self._path = path

    def with_timeout(self, timeout_s: float) -> "ConnectionLock":
        """Return the same lock with another timeout."""
        other = ConnectionLock(self._path, timeout_s)
        other._lock = self._lock
        return other

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        super().__exit__(kind, error, where)
        if isinstance(error, sqlite3.OperationalError) and _is_busy(error):
            raise database_busy(self._path) from error


class Database:
    """A small SQLite file with one connection, readable by its owner only, and thread-safe.

    `schema` holds the statements that create the tables of this `version`.
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
                    self._create_tables(schema, version)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise _unusable(path, error) from error
            raise

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for statements outside a transaction."""
        with self._lock:
            yield self._connection

    @contextmanager
    def transaction(self, busy_s: float = BUSY_S) -> Iterator[sqlite3.Connection]:
        """Run a transaction that locks the file for writing; raise DatabaseBusy if the lock takes too long."""
        with self._lock.with_timeout(busy_s):
            self._connection.execute(f"PRAGMA busy_timeout = {round(busy_s * 1000)}")
            with transaction(self._connection):
                yield self._connection

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _create_tables(self, schema: str, version: int) -> None:
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found > version:
            raise InvalidInput(
                f"{self.path} was made by a newer tipbench (version {found}, this one knows {version}); use that "
                "version, or move the file away"
            )
        if found == 0:
            for statement in filter(str.strip, schema.split(";")):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {version}")


def database_busy(path: Path) -> DatabaseBusy:
    return DatabaseBusy(f"{path} is locked: another process is writing to it; try again in a moment")


def _unusable(path: Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"{path} can't be used: {error}; move it away and a new one will be created")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # the last byte of an extended code is the primary code
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
