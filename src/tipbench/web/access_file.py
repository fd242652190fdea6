"""Who may come in, in a small SQLite file that the server and the command line share.

What it holds is read once and kept; SQLite's own counter of foreign commits says when to read it again. So asking costs
microseconds, and what another process has changed is seen by the next request.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tipbench.errors import InvalidInput
from tipbench.private_files import private_file
from tipbench.sqlite_files import BUSY_S, ConnectionLock, connect, enable_wal
from tipbench.web.visitor import Role

_VERSION = 1
_SCHEMA = """
CREATE TABLE token (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL,
    created_ms INTEGER NOT NULL, last_seen_ms INTEGER, UNIQUE (role, name)
);
CREATE TABLE ended_session (id TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL);
"""


@dataclass(frozen=True)
class StoredToken:
    """A token without the token: from these 256 bits nobody finds the 256 random ones."""

    id: str
    role: Role
    name: str
    salt: bytes
    digest: bytes
    created_ms: int
    last_seen_ms: int | None


@dataclass(frozen=True)
class Stored:
    """All that the file holds."""

    tokens: tuple[StoredToken, ...]
    ended_sessions: frozenset[str]


class AccessFile:
    """One connection to write and one to read: every request is looked up in it, and none waits for who writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = ConnectionLock(path)
        self._reading = ConnectionLock(path)
        try:
            with self._writing:
                self._writer = _connect(private_file(path))
            self._reader = connect(path, busy_s=0)
        except (sqlite3.Error, OSError) as error:
            raise InvalidInput(f"{path} can't be used: {error}; move it away to start with new tokens") from error
        self._seen = -1
        self._stored = Stored((), frozenset())

    def read(self) -> Stored:
        """What is in it now. Raises DatabaseBusy at once if the file can't be read."""
        with self._reading:
            (seen,) = self._reader.execute("PRAGMA data_version").fetchone()
            if seen != self._seen:
                self._stored = _read_all(self._reader)
                self._seen = seen
            return self._stored

    @contextmanager
    def write(self, patience_s: float = BUSY_S) -> Iterator[sqlite3.Connection]:
        """A transaction that has the file for itself from its beginning: nothing changes between look and leap."""
        with self._writing.waited_for(patience_s):
            self._writer.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # a full disk may have ended it
                    self._writer.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._writing, self._reading:
            self._writer.close()
            self._reader.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    try:
        enable_wal(connection)
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise InvalidInput(
                f"{path} was made by a newer tipbench (version {version}); use that one, or move it away"
            )
        if version == 0:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _read_all(connection: sqlite3.Connection) -> Stored:
    columns = "id, role, name, salt, digest, created_ms, last_seen_ms"
    with closing(connection.execute(f"SELECT {columns} FROM token ORDER BY created_ms, name")) as rows:
        tokens = tuple(StoredToken(*row) for row in rows)
    with closing(connection.execute("SELECT id FROM ended_session")) as rows:
        return Stored(tokens, frozenset(session for (session,) in rows))
