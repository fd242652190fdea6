"""What judges have given so far and not handed in: stored field by field, so that two tabs never undo each other."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tipbench.core.files import make_private_folder
from tipbench.core.sqlite import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS drafts (
    batch TEXT, slot TEXT, part TEXT, name TEXT, value TEXT, at_ms INTEGER, PRIMARY KEY (batch, slot, part, name)
) WITHOUT ROWID
"""


class Drafts:
    """A small database of the server's own. A field is ("scores", "tone"), ("flags", "overlong") or ("note", "")."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self._database = Database(path, _SCHEMA, version=1)

    def keep(self, batch: str, slot: str, fields: Mapping[tuple[str, str], Any], at_ms: int) -> None:
        """All of these fields; None takes back what was given."""
        with self._database.transaction() as database:
            for (part, name), value in fields.items():
                database.execute(
                    "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?)",
                    (batch, slot, part, name, json.dumps(value), at_ms),
                )

    def of(self, batch: str) -> dict[str, dict[tuple[str, str], Any]]:
        """What is kept of a batch, by slot."""
        with self._database.connection() as database:
            rows = database.execute("SELECT slot, part, name, value FROM drafts WHERE batch = ?", (batch,))
            found: dict[str, dict[tuple[str, str], Any]] = {}
            for slot, part, name, value in rows:
                found.setdefault(slot, {})[part, name] = json.loads(value)
            return found

    def close(self) -> None:
        self._database.close()
