"""MLflow's own store, used in this process for databases whose schema `tables` does not know, and for rare calls."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tipbench.bench.tracking.interface import Experiment, Metric, Names, RunStatus, StoredRun, run_filter
from tipbench.core.errors import MissingExtra

MISSING = (
    "tipbench's own database needs MLflow; install it with: pip install 'tipbench[mlflow]', or choose a server with "
    "--mlflow-url"
)
_PAGE = 10_000


class MlflowStore:
    """MLflow's SqlAlchemyStore on one database; it creates missing tables.

    Raises MLflow's errors, which the caller translates.
    """

    def __init__(self, url: str, artifacts: Path) -> None:
        self._mlflow = _Mlflow.load()
        self._store = self._mlflow.store(url, str(artifacts))

    def close(self) -> None:
        self._store.engine.dispose()

    def find_experiment(self, name: str) -> Experiment | None:
        found = self._store.get_experiment_by_name(name)
        return None if found is None else _experiment(found)

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        pairs = [self._mlflow.entities.ExperimentTag(key, value) for key, value in tags.items()]
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
        while True:
            page = self._store.search_experiments(max_results=1_000, page_token=token)
            found.extend(_experiment(entry) for entry in page if entry.name.startswith(prefix))
            token = page.token
            if not token:
                return found

    def delete_experiment(self, experiment_id: str) -> None:
        self._store.delete_experiment(experiment_id)

    def restore_experiment(self, experiment_id: str) -> None:
        self._store.restore_experiment(experiment_id)

    def tag_experiment(
        self,
        experiment_id: str,
        key: str,
        value: str,
        timeout_s: float | None = None,  # noqa: ARG002 - MLflow has its own
    ) -> None:
        self._store.set_experiment_tag(experiment_id, self._mlflow.entities.ExperimentTag(key, value))

    def untag_experiment(self, experiment_id: str, key: str) -> None:
        self._store.delete_experiment_tag(experiment_id, key)

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        pairs = [self._mlflow.entities.RunTag(key, value) for key, value in tags.items()]
        run = self._store.create_run(experiment_id, "", started_ms, pairs, name)
        return run.info.run_id, run.info.artifact_uri

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        entities = self._mlflow.entities
        self._store.log_batch(
            run_id,
            [entities.Metric(m.key, m.value, m.timestamp_ms, m.step) for m in metrics],
            [entities.Param(key, value) for key, value in params.items()],
            [entities.RunTag(key, value) for key, value in tags.items()],
        )

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None:
        code = self._mlflow.entities.RunStatus.from_string(status)
        self._store.update_run_info(run_id, code, ended_ms, None)

    def search_runs(
        self,
        experiment_id: str,
        tags: Mapping[str, str],
        omit: Sequence[str] = (),  # noqa: ARG002 - MLflow reads runs whole
        run_ids: Sequence[str] = (),
        only: Names | None = None,  # noqa: ARG002
        newest_first: bool = False,
    ) -> Iterator[StoredRun]:
        seen: set[str] = set()
        token = None
        while True:
            page = self._store.search_runs(
                [experiment_id],
                run_filter(tags, run_ids),
                self._mlflow.entities.ViewType.ACTIVE_ONLY,
                max_results=_PAGE,
                order_by=[f"attributes.start_time {'DESC' if newest_first else 'ASC'}"],
                page_token=token,
            )
            for run in page:
                if run.info.run_id not in seen:
                    seen.add(run.info.run_id)
                    yield _stored_run(run)
            token = page.token
            if not token:
                return

    def delete_run(self, run_id: str) -> None:
        self._store.delete_run(run_id)


class _Mlflow:
    """The parts of MLflow that are used, imported on demand because that takes seconds."""

    def __init__(self, store: Any, entities: Any, error: type[Exception]) -> None:
        self.store = store
        self.entities = entities
        self.error: Any = error

    @classmethod
    def load(cls) -> "_Mlflow":
        # MLflow sends telemetry unless disabled; a bench should make no network calls of its own.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            import mlflow.entities
            from mlflow.exceptions import MlflowException
            from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
        except ImportError as error:
            raise MissingExtra(f"{MISSING} ({error})") from error
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        return cls(SqlAlchemyStore, mlflow.entities, MlflowException)


def is_mlflow_error(error: Exception) -> bool:
    """Return whether the error is MLflow's or SQLAlchemy's, without importing either."""
    return any(kind.__module__.partition(".")[0] in ("mlflow", "sqlalchemy") for kind in type(error).__mro__)


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
        experiment_id=str(run.info.experiment_id),
    )
