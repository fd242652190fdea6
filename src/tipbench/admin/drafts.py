"""What judges have given so far and not handed in: kept field by field, so that two tabs never undo each other."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tipbench.errors import TipbenchError
from tipbench.private_files import make_private_folder
from tipbench.sqlite_files import ConnectionLock, connect, enable_wal

_SCHEMA = 1


class Drafts:
    """A small database of the server's own. A field is ("scores", "tone"), ("flags", "overlong") or ("note", "")."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self._lock = ConnectionLock(path)
        self._connection = connect(path)
        path.chmod(0o600)
        with self._lock:
            enable_wal(self._connection)
        with self._writing() as run:
            (schema,) = run("PRAGMA user_version").fetchone()
            if schema > _SCHEMA:
                raise TipbenchError(f"{path} was made by a later tipbench (schema {schema}); use that one, or move it")
            run(
                "CREATE TABLE IF NOT EXISTS drafts (batch TEXT, slot TEXT, part TEXT, name TEXT, value TEXT, "
                "at_ms INTEGER, PRIMARY KEY (batch, slot, part, name)) WITHOUT ROWID"
            )
            run(f"PRAGMA user_version = {_SCHEMA}")

    def keep(self, batch: str, slot: str, fields: Mapping[tuple[str, str], Any], at_ms: int) -> None:
        """All of these fields; None takes back what was given."""
        with self._writing() as run:
            for (part, name), value in fields.items():
                run(
                    "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?)",
                    (batch, slot, part, name, json.dumps(value), at_ms),
                )

    def of(self, batch: str) -> dict[str, dict[tuple[str, str], Any]]:
        """What is kept of a batch, by slot."""
        with self._lock:
            rows = self._connection.execute("SELECT slot, part, name, value FROM drafts WHERE batch = ?", (batch,))
            found: dict[str, dict[tuple[str, str], Any]] = {}
            for slot, part, name, value in rows:
                found.setdefault(slot, {})[part, name] = json.loads(value)
            return found

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
