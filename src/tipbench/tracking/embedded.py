"""MLflow's own store in this process, on a SQLite file: no server and no port, and `mlflow ui` reads the file."""

import importlib.util
import logging
import os
import re
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tipbench.errors import MissingExtra, NothingStored, TrackingError
from tipbench.tracking.bulk import BulkWriter
from tipbench.tracking.interface import Experiment, FinishedRun, Metric, RunStatus, StoredRun
from tipbench.untrusted import printable

SCHEME = "sqlite:///"
_PAGE = 10_000
_MISSING = (
    "a database of tipbench's own needs MLflow; install it with: pip install 'tipbench[mlflow]', or name a server "
    "with --mlflow-url"
)
_READ_AS_SOMETHING_ELSE = re.compile(r"\?|%[0-9A-Fa-f]{2}")  # in a database's URL


class EmbeddedMlflow:
    """The MLflow database in one SQLite file; its artifacts lie in a folder beside it."""

    def __init__(self, url: str, create: bool = True, is_own: bool = False) -> None:
        path = Path(url.removeprefix(SCHEME))
        with suppress(RuntimeError):  # the home folder of a user whom nobody knows
            path = path.expanduser()
        self.path = path.absolute()
        self.address = f"{SCHEME}{self.path}"
        if _READ_AS_SOMETHING_ELSE.search(str(self.path)):
            raise TrackingError(f"the path {self.path} can't be part of {SCHEME}…, for its '?' or '%'; take another")
        if not self.path.parent.is_dir() and (create or not is_own):
            raise TrackingError(f"the folder {self.path.parent} of {self.address} does not exist; make it first")
        if importlib.util.find_spec("mlflow") is None:
            raise MissingExtra(_MISSING)
        if not create and not self.path.is_file():
            raise NothingStored(f"there are no results yet: {self.address} does not exist; 'tipbench collect' makes it")
        self._mlflow = _Mlflow.load()
        self._artifacts = self.path.with_name(self.path.stem + "-artifacts")
        with self._translated(), _alone(self.path):
            self._store = self._mlflow.store(self.address, str(self._artifacts))
            self._bulk = BulkWriter.of(self._store)

    def find_experiment(self, name: str) -> Experiment | None:
        with self._translated():
            found = self._store.get_experiment_by_name(name)
        return None if found is None else _experiment(found)

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        pairs = [self._mlflow.entities.ExperimentTag(key, value) for key, value in tags.items()]
        with self._translated():
            try:
                self._store.create_experiment(name, tags=pairs)
            except self._mlflow.error as error:
                if error.error_code == "RESOURCE_ALREADY_EXISTS":
                    return None
                raise
        return self.find_experiment(name)

    def list_experiments(self, prefix: str) -> list[Experiment]:
        found: list[Experiment] = []
        token = None
        with self._translated():
            while True:
                page = self._store.search_experiments(max_results=1_000, page_token=token)
                found.extend(_experiment(entry) for entry in page if entry.name.startswith(prefix))
                token = page.token
                if not token:
                    return found

    def delete_experiment(self, experiment_id: str) -> None:
        with self._translated():
            self._store.delete_experiment(experiment_id)

    def restore_experiment(self, experiment_id: str) -> None:
        with self._translated():
            self._store.restore_experiment(experiment_id)

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        pairs = [self._mlflow.entities.RunTag(key, value) for key, value in tags.items()]
        with self._translated():
            run = self._store.create_run(experiment_id, "", started_ms, pairs, name)
        return run.info.run_id, run.info.artifact_uri

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        entities = self._mlflow.entities
        with self._translated():
            self._store.log_batch(
                run_id,
                [entities.Metric(m.key, m.value, m.timestamp_ms, m.step) for m in metrics],
                [entities.Param(key, value) for key, value in params.items()],
                [entities.RunTag(key, value) for key, value in tags.items()],
            )

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:
        if self._bulk is None:
            return None
        run_id = uuid.uuid4().hex
        return run_id, f"{experiment.artifact_location}/{run_id}/artifacts"

    def insert_runs(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        assert self._bulk is not None, "reserve_run gave a place"
        with self._translated():
            self._bulk.insert(experiment, runs)

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None:
        code = self._mlflow.entities.RunStatus.from_string(status)
        with self._translated():
            self._store.update_run_info(run_id, code, ended_ms, None)

    def search_runs(self, experiment_id: str, filter_string: str) -> list[StoredRun]:
        found: dict[str, StoredRun] = {}
        token = None
        with self._translated():
            while True:
                page = self._store.search_runs(
                    [experiment_id],
                    filter_string,
                    self._mlflow.entities.ViewType.ACTIVE_ONLY,
                    max_results=_PAGE,
                    order_by=["attributes.start_time ASC"],
                    page_token=token,
                )
                found.update((run.info.run_id, _stored_run(run)) for run in page)
                token = page.token
                if not token:
                    return list(found.values())

    def delete_run(self, run_id: str) -> None:
        with self._translated():
            self._store.delete_run(run_id)

    def can_store_files(self, artifact_uri: str) -> bool:
        return _local_folder(artifact_uri) is not None

    def put_file(self, artifact_uri: str, name: str, content: bytes) -> None:
        folder = self._folder(artifact_uri)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            scratch = folder / f".{name}.part"
            scratch.write_bytes(content)
            scratch.replace(folder / name)
        except OSError as error:
            raise TrackingError(f"{folder / name} can't be written: {error.strerror or error}") from error

    def get_file(self, artifact_uri: str, name: str) -> bytes:
        path = self._folder(artifact_uri) / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise TrackingError(f"{path} can't be read: {error.strerror or error}") from error

    def close(self) -> None:
        self._store.engine.dispose()

    def _folder(self, artifact_uri: str) -> Path:
        folder = _local_folder(artifact_uri)
        if folder is None:
            raise TrackingError(f"artifacts at {artifact_uri} can't be reached from {self.address}")
        return folder

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._mlflow.error as error:
            raise self._ours(error) from error
        except (self._mlflow.database_error, sqlite3.Error, OSError) as error:
            raise TrackingError(f"{self.path} can't be used as an MLflow database: {_first_line(error)}") from error

    def _ours(self, error: Any) -> TrackingError:
        message = _first_line(error)
        if "mlflow db upgrade" in str(error):
            message = f"it was made by another version of MLflow; run 'mlflow db upgrade {self.address}' (back it up)"
        return TrackingError(f"the MLflow database {self.path}: {message}")


class _Mlflow:
    """The parts of MLflow that are used; importing them takes seconds, so only whoever needs them does."""

    def __init__(self, store: Any, entities: Any, error: type[Exception], database_error: type[Exception]) -> None:
        self.store = store
        self.entities = entities
        self.error: Any = error
        self.database_error = database_error

    @classmethod
    def load(cls) -> "_Mlflow":
        # MLflow reports usage to its makers unless told not to; a bench has no business on the network.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            import mlflow.entities
            from mlflow.exceptions import MlflowException
            from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
            from sqlalchemy.exc import SQLAlchemyError
        except ImportError as error:
            raise MissingExtra(f"{_MISSING} ({error})") from error
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        return cls(SqlAlchemyStore, mlflow.entities, MlflowException, SQLAlchemyError)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Makes the tables without company: two that do it at once leave a broken database.

    A file that SQLite can't open is found out first, because MLflow would try it again for minutes.
    """
    import fcntl  # not on every system

    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with closing(sqlite3.connect(path)) as probe:
            tables = {name for (name,) in probe.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "alembic_version" not in tables:
            raise TrackingError(f"{path} is a database of something else than MLflow; it was left as it is")
        yield


def _local_folder(artifact_uri: str) -> Path | None:
    if artifact_uri.startswith("file:"):
        return Path(unquote(urlsplit(artifact_uri).path))
    return Path(artifact_uri) if artifact_uri.startswith("/") else None


def _first_line(error: Exception) -> str:
    return printable(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__, 300)


def _experiment(entry: Any) -> Experiment:
    return Experiment(
        id=str(entry.experiment_id),
        name=entry.name,
        artifact_location=entry.artifact_location,
        deleted=entry.lifecycle_stage == "deleted",
        created_ms=entry.creation_time or 0,
        tags=dict(entry.tags),
    )


def _stored_run(run: Any) -> StoredRun:
    latest = run.data._metric_objs
    return StoredRun(
        run_id=run.info.run_id,
        status=run.info.status,
        started_ms=run.info.start_time or 0,
        artifact_uri=run.info.artifact_uri,
        tags=dict(run.data.tags),
        params=dict(run.data.params),
        metrics={metric.key: metric.value for metric in latest},
        steps={metric.key: metric.step for metric in latest},
    )
