"""MLflow's database in one SQLite file, used in this process: no server, no port, and `mlflow ui` can read the file."""

import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tipbench.bench.tracking.artifacts import RunsBeingWritten, artifacts_folder, new_run_id
from tipbench.bench.tracking.interface import (
    Addition,
    Experiment,
    FinishedRun,
    Metric,
    Names,
    RestApi,
    RunStatus,
    StoredRun,
)
from tipbench.bench.tracking.mlflow_schema import check_schema
from tipbench.bench.tracking.mlflow_store import MlflowStore, is_mlflow_error
from tipbench.bench.tracking.new_database import NewDatabase
from tipbench.bench.tracking.tables import COMMAND_BUSY_S, TESTED_SCHEMAS, SqliteTables, schema_of
from tipbench.core.errors import DatabaseBusy, NothingStored, TrackingError, TrackingUnreachable
from tipbench.core.files import atomic_write, is_private, write_new
from tipbench.core.locks import file_lock
from tipbench.core.paths import cache_folder
from tipbench.core.settings import Settings
from tipbench.core.sqlite import database_busy, file_stamp
from tipbench.core.untrusted import printable

SCHEME = "sqlite:///"
_SPECIAL_IN_URL = re.compile(r"\?|%[0-9A-Fa-f]{2}")  # not part of the path in a database URL


class EmbeddedMlflow:
    """An MLflow database in one SQLite file, with its artifacts in a folder next to it.

    A new database is created in the background: until it exists, reads find nothing and writes wait.
    """

    is_shared = False
    under_prefix = ""

    def __init__(self, url: str, create: bool = True, is_own: bool = False, busy_s: float = COMMAND_BUSY_S) -> None:
        self._busy_s = busy_s
        path = Path(url.removeprefix(SCHEME))
        with suppress(RuntimeError):  # the home folder of an unknown user
            path = path.expanduser()
        self.path = path.absolute()
        self.address = f"{SCHEME}{self.path}"
        if _SPECIAL_IN_URL.search(str(self.path)):
            raise TrackingError(
                f"the path {self.path} can't be part of {SCHEME}…, because of its '?' or '%'; use another path"
            )
        if not self.path.parent.is_dir() and (create or not is_own):
            raise TrackingError(f"the folder {self.path.parent} of {self.address} does not exist; create it first")
        if not create and not self.path.exists():
            raise NothingStored(
                f"there are no results yet: {self.address} does not exist; 'tipbench collect' creates it"
            )
        self._artifacts = artifacts_folder(self.path)
        self._file_mode = 0o600 if self.path.parent.is_dir() and is_private(self.path.parent) else 0o644
        self._being_written = RunsBeingWritten(self.path)
        self._open_lock = threading.RLock()
        self._sql: SqliteTables | None = None  # if the schema is one that we know
        self._mlflow: MlflowStore | None = None  # opened on demand
        self._new_database: NewDatabase | None = None
        with self._translated():
            if not self.path.exists():
                self._new_database = NewDatabase(self.path, self._artifacts, cache_folder(Settings().home))
            if self._new_database is None or self._new_database.is_ready:
                self._open()

    def version(self) -> str | None:
        with self._translated():
            tables = None if self._is_being_created() else self._tables()
            return tables.version() if isinstance(tables, SqliteTables) else None

    def stamp(self) -> str | None:
        return None if self._is_being_created() else file_stamp(self.path)

    def find_experiment(self, name: str) -> Experiment | None:
        if self._is_being_created():
            return None
        with self._translated():
            return self._tables().find_experiment(name)

    def list_experiments(self, prefix: str) -> list[Experiment]:
        if self._is_being_created():
            return []
        with self._translated():
            return self._tables().list_experiments(prefix)

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        with self._translated():
            return self._tables().create_experiment(name, tags)

    def delete_experiment(self, experiment_id: str) -> None:
        with self._translated():
            self._mlflow_store().delete_experiment(experiment_id)

    def restore_experiment(self, experiment_id: str) -> None:
        with self._translated():
            self._mlflow_store().restore_experiment(experiment_id)

    def tag_experiment(self, experiment_id: str, key: str, value: str, timeout_s: float | None = None) -> None:
        with self._translated():
            self._tables().tag_experiment(experiment_id, key, value, timeout_s)

    def untag_experiment(self, experiment_id: str, key: str) -> None:
        with self._translated():
            self._tables().untag_experiment(experiment_id, key)

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        with self._translated():
            return self._mlflow_store().create_run(experiment_id, name, started_ms, tags)

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        with self._translated():
            self._tables().log_batch(run_id, metrics, params, tags)

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:
        with self._translated():
            if not isinstance(self._tables(), SqliteTables):
                return None
            run_id = new_run_id()
            self._being_written.begin(run_id)
        return run_id, f"{experiment.artifact_location}/{run_id}/artifacts"

    def insert_runs(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        with self._translated():
            tables = self._tables()
            assert isinstance(tables, SqliteTables), "reserve_run gave a place"
            try:
                tables.insert_runs(experiment, runs)
            finally:
                self._being_written.end(run.run_id for run in runs)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._translated():
            tables = self._tables()
            with tables.transaction() if isinstance(tables, SqliteTables) else nullcontext():
                yield

    def extend_runs(self, additions: Iterable[Addition]) -> bool:
        with self._translated():
            tables = self._tables()
            if not isinstance(tables, SqliteTables):
                return False
            tables.extend_runs(additions)
        return True

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None:
        with self._translated():
            self._mlflow_store().end_run(run_id, status, ended_ms)

    def search_runs(
        self,
        experiment_id: str,
        tags: Mapping[str, str],
        omit: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        only: Names | None = None,
        newest_first: bool = False,
    ) -> Iterator[StoredRun]:
        with self._translated():
            yield from self._tables().search_runs(experiment_id, tags, omit, run_ids, only, newest_first)

    def delete_run(self, run_id: str) -> None:
        with self._translated():
            self._mlflow_store().delete_run(run_id)

    def can_store_files(self, artifact_uri: str) -> bool:
        return artifact_uri.startswith(("/", "file:"))

    def put_files(self, artifact_uri: str, files: Mapping[str, bytes]) -> None:
        # Not by pathlib, which took a third of the time for many small files.
        folder = artifact_uri if artifact_uri.startswith("/") else str(self._folder(artifact_uri))
        try:
            is_new = _make_folder(folder)
            for name, content in files.items():
                if is_new:  # nobody can know of the run before its files are complete
                    write_new(f"{folder}/{name}", content, mode=self._file_mode)
                else:
                    atomic_write(f"{folder}/{name}", content, mode=self._file_mode)
        except OSError as error:
            raise TrackingError(f"{folder} can't be written to: {error.strerror or error}") from error

    def get_file(self, artifact_uri: str, name: str) -> bytes:
        path = f"{self._folder(artifact_uri)}/{name}"
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - for many small files, pathlib took half the time
                return file.readall()
        except OSError as error:
            raise TrackingError(f"{path} can't be read: {error.strerror or error}") from error

    @contextmanager
    def rest(self) -> Iterator[RestApi]:
        from tipbench.bench.tracking.mlflow_process import served_database  # imports httpx

        with self._translated():
            self._tables()
        with served_database(self.path, self._artifacts, Settings().environment_without_secrets()) as client:
            yield client

    def close(self) -> None:
        if self._new_database:
            self._new_database.abandon()
        for opened in (self._sql, self._mlflow, self._being_written):
            if opened:
                opened.close()

    def _is_being_created(self) -> bool:
        return self._new_database is not None and not self._new_database.is_ready

    def _tables(self) -> SqliteTables | MlflowStore:
        with self._open_lock:
            if not (self._sql or self._mlflow):
                self._open()
            return self._sql or self._mlflow_store()

    def _open(self) -> None:
        with self._open_lock:
            if self._new_database:
                self._new_database.finish()
                self._new_database = None
            if schema_of(self.path, self._busy_s) in TESTED_SCHEMAS:
                self._sql = SqliteTables(self.path, self._artifacts, self._busy_s)
            else:
                self._mlflow_store()

    def _mlflow_store(self) -> MlflowStore:
        """Open MLflow's own store on demand; it creates the tables of an empty file."""
        with self._open_lock:
            if self._mlflow is None:
                # MLflow may create tables: two processes doing so at once leave a broken database
                with file_lock(self.path.with_name(f".{self.path.name}.lock")):
                    check_schema(self.path)
                    self._mlflow = MlflowStore(self.address, self._artifacts)
            return self._mlflow

    def _folder(self, artifact_uri: str) -> str:
        folder = _local_folder(artifact_uri)
        if folder is None:
            raise TrackingError(f"artifacts at {artifact_uri} can't be reached from {self.address}")
        return folder

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DatabaseBusy as error:
            raise TrackingUnreachable(str(error)) from error
        except (sqlite3.Error, OSError) as error:
            raise TrackingError(f"{self.path} can't be used as an MLflow database: {_first_line(error)}") from error
        except Exception as error:
            if is_mlflow_error(error):
                raise self._to_tracking_error(error) from error
            raise

    def _to_tracking_error(self, error: Exception) -> TrackingError:
        message = _first_line(error)
        if "database is locked" in str(error):
            return TrackingUnreachable(str(database_busy(self.path)))
        return TrackingError(f"the MLflow database {self.path}: {message}")


def _make_folder(folder: str) -> bool:
    """Create the folder and its missing parents; return False if it exists already."""
    parent = os.path.dirname(folder)  # noqa: PTH120
    try:
        os.mkdir(parent)  # noqa: PTH102 - a run's own folder, which is new nearly always
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
    try:
        os.mkdir(folder)  # noqa: PTH102
    except FileExistsError:
        return False
    return True


def _local_folder(artifact_uri: str) -> str | None:
    if artifact_uri.startswith("file:"):
        return unquote(urlsplit(artifact_uri).path)
    return artifact_uri if artifact_uri.startswith("/") else None


def _first_line(error: Exception) -> str:
    return printable(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__, 300)
