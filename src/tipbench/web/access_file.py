"""Who may come in, in a small SQLite file that the server and the command line share.

What it holds is read once and kept; SQLite's own counter of foreign commits says when to read it again. So asking costs
microseconds, and what another process has changed is seen by the next request.
"""

import sqlite3
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

from tipbench.core.sqlite import BUSY_S, ConnectionLock, Database, connect
from tipbench.web.visitor import Role

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
        self._database = Database(path, _SCHEMA, version=1)
        with self._database.connection() as database:
            database.execute("PRAGMA secure_delete = ON")
        self._reading = ConnectionLock(path)
        self._reader = connect(path, busy_s=0)
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

    def write(self, busy_s: float = BUSY_S) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction that has the file for itself from its beginning: nothing changes between look and leap."""
        return self._database.transaction(busy_s)

    def close(self) -> None:
        self._database.close()
        with self._reading:
            self._reader.close()


def _read_all(connection: sqlite3.Connection) -> Stored:
    columns = "id, role, name, salt, digest, created_ms, last_seen_ms"
    with closing(connection.execute(f"SELECT {columns} FROM token ORDER BY created_ms, name")) as rows:
        tokens = tuple(StoredToken(*row) for row in rows)
    with closing(connection.execute("SELECT id FROM ended_session")) as rows:
        return Stored(tokens, frozenset(session for (session,) in rows))
