"""A new database, made by MLflow itself in a process of its own, while the first cells are generated already.

Making the tables takes MLflow some seconds, importing it included. So an empty database is made once for each version
of MLflow and kept; a new one is a copy of it.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing
from importlib import metadata
from pathlib import Path

from tipbench.bench.tracking.mlflow_store import MISSING, MlflowStore
from tipbench.bench.tracking.tables import schema_of
from tipbench.core.errors import DatabaseBusy, MissingExtra, TrackingError
from tipbench.core.files import is_private, make_private_folder
from tipbench.core.locks import file_lock
from tipbench.core.processes import module_command, start_process
from tipbench.core.untrusted import printable


class NewDatabase:
    """A database that is being made; it stands at its path once `finish` has returned."""

    def __init__(self, path: Path, artifacts: Path, cache: Path) -> None:
        self._path = path
        self._artifacts = artifacts
        self._empty = cache / f"mlflow-{_version()}.db"
        self._failure = ""
        self._maker: subprocess.Popen[bytes] | None = None
        if not _is_whole(self._empty):
            command = module_command("tipbench.bench.tracking.new_database", str(self._empty))
            self._maker = start_process(command, stderr=subprocess.PIPE)

    @property
    def is_ready(self) -> bool:
        return self._maker is None or self._maker.poll() is not None

    def abandon(self) -> None:
        """Nobody needs it any more; what is being made is kept for the next one."""
        self._wait()

    def finish(self) -> None:
        self._wait()
        if self._failure:
            raise TrackingError(f"MLflow could not make a database: {printable(self._failure, 300)}")
        _copy(self._empty, self._path, self._artifacts)

    def _wait(self) -> None:
        if self._maker:
            _, said = self._maker.communicate()
            if self._maker.returncode:
                self._failure = (
                    said.decode(errors="replace").strip().splitlines() or [f"exit status {self._maker.returncode}"]
                )[-1]
            self._maker = None


def make_empty(path: Path) -> None:
    """The empty database that new ones are copied from; once, however many want it at the same time."""
    make_private_folder(path.parent)
    with file_lock(path.with_name(f".{path.name}.lock")):
        if _is_whole(path):
            return
        scratch = path.with_name(f".{path.name}.part")
        scratch.unlink(missing_ok=True)  # of somebody who was killed
        MlflowStore(f"sqlite:///{scratch}", path.with_suffix("")).close()
        scratch.replace(path)


def _is_whole(path: Path) -> bool:
    """Something else than an empty file, or one that was cut off, as a full disk leaves it."""
    try:
        return path.exists() and schema_of(path) is not None
    except (sqlite3.Error, DatabaseBusy, TrackingError):
        return False


def _copy(empty: Path, path: Path, artifacts: Path) -> None:
    """The whole database, or none; whoever else made one at the same time, theirs is taken."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        shutil.copyfile(empty, scratch)
        if is_private(scratch.parent):
            scratch.chmod(0o600)
        with closing(sqlite3.connect(scratch)) as made:
            made.execute("UPDATE experiments SET artifact_location = ? || '/' || experiment_id", (str(artifacts),))
            made.commit()
            made.execute("PRAGMA journal_mode = WAL")  # whoever reads, as MLflow's pages do, holds up no writer
        try:
            os.link(scratch, path)
        except FileExistsError:
            return
    finally:
        scratch.unlink(missing_ok=True)


def _version() -> str:
    try:
        return metadata.version("mlflow")
    except metadata.PackageNotFoundError:
        raise MissingExtra(MISSING) from None


if __name__ == "__main__":
    make_empty(Path(sys.argv[1]))
