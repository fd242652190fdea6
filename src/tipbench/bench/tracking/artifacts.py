"""The artifacts of a database file: which folders belong to its runs, and where the database says that they are.

The files of a run are written before its row, so that nobody can know of a run whose files are not complete. A process
that is killed in between leaves a folder that belongs to no run. Until the row is written, a lock keeps others from
taking the folder for such a one.
"""

import os
import re
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from tipbench.core.locks import lock_until, try_lock
from tipbench.core.sqlite import connect, database_busy, transaction

_RUN_ID = re.compile(r"[0-9a-f]{32}")
_CLAIMED = re.compile(r"\.[0-9a-f]{32}\.part")  # the name of a folder that is being removed
_TIME_DIGITS = 12
_LOCK_TIMEOUT_S = 60.0
_HOUR_S, _DAY_S = 3_600.0, 86_400.0


def artifacts_folder(database: Path) -> Path:
    """Path of the folder of a database file's artifacts."""
    return database.with_name(database.stem + "-artifacts")


def new_run_id() -> str:
    """Return an id in MLflow's format that starts with the time, so that runs written together are adjacent in indexes.

    With random ids, each row goes to a different page of a large database, which takes four times as long.
    """
    return f"{time.time_ns() // 1_000_000:0{_TIME_DIGITS}x}{uuid.uuid4().hex[_TIME_DIGITS:]}"


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


# Folders that belong to no run


class RunsBeingWritten:
    """The runs whose files this process may have written, and whose rows it has not. Thread-safe.

    While there are any, it holds a shared lock. A run that is never ended, because of an error, holds it until `close`.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._runs: set[str] = set()
        self._file = -1

    def begin(self, run_id: str) -> None:
        """Add a run. Raises DatabaseBusy if folders are being removed for very long."""
        with self._lock:
            if self._file < 0:
                file = _open_lock(self._database)
                if not lock_until(file, time.monotonic() + _LOCK_TIMEOUT_S, shared=True):
                    os.close(file)
                    raise database_busy(self._database)
                self._file = file
            self._runs.add(run_id)

    def end(self, run_ids: Iterable[str]) -> None:
        with self._lock:
            self._runs.difference_update(run_ids)
            if not self._runs:
                self._release()

    def close(self) -> None:
        with self._lock:
            self._release()

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def abandoned_folders(database: Path, now_s: float, claim: bool) -> list[Path] | None:
    """Return the folders that killed processes left; None if runs are being written right now.

    With `claim`, they are renamed, so that even after a kill everybody knows that they are to be removed. A folder
    counts only if it is tipbench's own, by its name: that begins with the time at which it was made. Another database
    may have its artifacts here as well, and the ids that MLflow makes are random.
    """
    file = _open_lock(database)
    try:
        if not try_lock(file):
            return None
        known = stored_run_ids(database)
        if known is None:
            return []
        found = [one for one in artifacts_folder(database).glob("*/*") if _is_abandoned(one, known, now_s)]
        return [_claimed(folder) for folder in found] if claim else found
    finally:
        os.close(file)


def _claimed(folder: Path) -> Path:
    return folder if _CLAIMED.fullmatch(folder.name) else folder.rename(folder.with_name(f".{folder.name}.part"))


def _is_abandoned(folder: Path, known: set[str], now_s: float) -> bool:
    if _CLAIMED.fullmatch(folder.name):
        return True
    if not _RUN_ID.fullmatch(folder.name) or folder.name in known:
        return False
    with suppress(FileNotFoundError):
        changed_s, named_s = folder.stat().st_mtime, int(folder.name[:_TIME_DIGITS], 16) / 1000
        # An hour: a process of a version without the lock may be at work.
        return now_s - changed_s > _HOUR_S and abs(changed_s - named_s) < _DAY_S
    return False


def _open_lock(database: Path) -> int:
    path = database.with_name(f".{database.name}.artifacts.lock")
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
