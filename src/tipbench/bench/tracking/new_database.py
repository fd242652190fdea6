"""Creates a new database: from the SQL that ships with tipbench, in milliseconds, or else with MLflow itself.

An MLflow whose schema is another one than that of the SQL takes some seconds to import and to create its tables. It
does so in a subprocess, while the first cells are already being generated, and once for each version of MLflow: the
empty database is cached, and a new one is a copy of it.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from contextlib import closing
from importlib import metadata
from pathlib import Path

from tipbench.bench.tracking import mlflow_schema
from tipbench.bench.tracking.mlflow_store import MISSING, MlflowStore
from tipbench.bench.tracking.tables import schema_of
from tipbench.core.errors import DatabaseBusy, MissingExtra, TrackingError
from tipbench.core.files import is_private, make_private_folder
from tipbench.core.locks import file_lock
from tipbench.core.processes import module_command, start_process
from tipbench.core.untrusted import printable


class NewDatabase:
    """A database that is being created; it exists at its path once `finish` has returned."""

    def __init__(self, path: Path, artifacts: Path, cache: Path) -> None:
        self._path = path
        self._artifacts = artifacts
        self._empty = cache / f"mlflow-{_version()}.db"
        self._failure = ""
        self._maker: subprocess.Popen[bytes] | None = None
        if not mlflow_schema.is_installed() and not _is_complete(self._empty):
            command = module_command("tipbench.bench.tracking.new_database", str(self._empty))
            self._maker = start_process(command, stderr=subprocess.PIPE)

    @property
    def is_ready(self) -> bool:
        return self._maker is None or self._maker.poll() is not None

    def abandon(self) -> None:
        """Wait without creating the database; the empty one that is being made stays cached."""
        self._wait()

    def finish(self) -> None:
        self._wait()
        if self._failure:
            raise TrackingError(f"MLflow could not create a database: {printable(self._failure, 300)}")
        _create(self._path, self._artifacts, None if mlflow_schema.is_installed() else self._empty)

    def _wait(self) -> None:
        if self._maker:
            _, stderr = self._maker.communicate()
            if self._maker.returncode:
                self._failure = (
                    stderr.decode(errors="replace").strip().splitlines() or [f"exit status {self._maker.returncode}"]
                )[-1]
            self._maker = None


def make_empty(path: Path) -> None:
    """Create the empty database that new ones are copied from; concurrent callers create it only once."""
    make_private_folder(path.parent)
    with file_lock(path.with_name(f".{path.name}.lock")):
        if _is_complete(path):
            return
        scratch = path.with_name(f".{path.name}.part")
        scratch.unlink(missing_ok=True)  # left by a process that was killed
        MlflowStore(f"sqlite:///{scratch}", path.with_suffix("")).close()
        scratch.replace(path)


def _is_complete(path: Path) -> bool:
    """Return whether the file is a complete database, not empty or truncated, as a full disk leaves it."""
    try:
        return path.exists() and schema_of(path) is not None
    except (sqlite3.Error, DatabaseBusy, TrackingError):
        return False


def _create(path: Path, artifacts: Path, empty: Path | None) -> None:
    """Create the database atomically, by SQL or as a copy; if another process created one meanwhile, that is used."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        if empty:
            shutil.copyfile(empty, scratch)
        with closing(sqlite3.connect(scratch)) as database:
            if is_private(scratch.parent):
                scratch.chmod(0o600)
            database.execute("PRAGMA synchronous = OFF")  # nobody uses the file yet; it is synced below
            if not empty:
                mlflow_schema.create_tables(database)
            now = round(time.time() * 1000)
            database.execute(
                "UPDATE experiments SET artifact_location = ? || '/' || experiment_id, creation_time = ?, "
                "last_update_time = ?",
                (str(artifacts), now, now),
            )
            database.commit()
            database.execute("PRAGMA journal_mode = WAL")  # readers, such as MLflow's pages, don't block writers
        _sync(scratch)
        try:
            os.link(scratch, path)
        except FileExistsError:
            return
    finally:
        scratch.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _version() -> str:
    try:
        return metadata.version("mlflow")
    except metadata.PackageNotFoundError:
        raise MissingExtra(MISSING) from None


if __name__ == "__main__":
    make_empty(Path(sys.argv[1]))
