"""The artifacts of a database file: which folders belong to its runs, and where the database says that they are."""

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from tipbench.core.sqlite import connect, transaction

_RUN_ID = re.compile(r"[0-9a-f]{32}")


def artifacts_folder(database: Path) -> Path:
    """Path of the folder of a database file's artifacts."""
    return database.with_name(database.stem + "-artifacts")


def is_run_folder(names: Sequence[str]) -> bool:
    """Return whether this path below the artifacts is that of a run: EXPERIMENT/RUN."""
    return len(names) == 2 and bool(_RUN_ID.fullmatch(names[1]))


def stored_run_ids(database: Path) -> set[str] | None:
    """Return the ids of all runs, also of deleted ones; None if this is no database of MLflow's."""
    with closing(connect(database)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return None
        return {run_id for (run_id,) in connection.execute("SELECT run_uuid FROM runs")}


# Columns of the database that hold absolute paths of artifacts
_LOCATIONS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("trace_tags", "value"),  # of mlflow.artifactLocation
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)


def move_locations(database: Path, old: Path, new: Path) -> None:
    """Change the locations of artifacts in a database file whose folder was moved."""
    with closing(connect(database)) as connection, transaction(connection):
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, column in _LOCATIONS:
            for scheme, quoted in (("", str), ("file://", quote)):
                before, after = (f"{scheme}{quoted(str(folder))}/" for folder in (old, new))
                if table in tables:
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                        (after, len(before) + 1, len(before), before),
                    )
