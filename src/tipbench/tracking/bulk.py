"""Many finished runs in one transaction, through MLflow's own table definitions.

MLflow's store commits several times a run. A grid of cheap cells would wait for that most of the time, so finished
cells are written many at once. The way is taken only for the schema versions it was tested with; for any other the
store's own calls are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tipbench.tracking.interface import Experiment, FinishedRun

# The alembic revisions of the databases that tests/tracking/test_bulk.py has passed with.
TESTED_SCHEMAS = frozenset({"dc11669786a5"})


@dataclass(frozen=True)
class BulkWriter:
    """Writes into the tables behind one MLflow store."""

    engine: Any
    tables: Any
    sqlalchemy: Any

    @classmethod
    def of(cls, store: Any) -> "BulkWriter | None":
        """A writer for this store; None when its schema is not one that was tested."""
        import sqlalchemy
        from mlflow.store.tracking.dbmodels import models

        with store.engine.connect() as connection:
            version = connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).scalar()
        return cls(store.engine, models, sqlalchemy) if version in TESTED_SCHEMAS else None

    def insert(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        """All of the runs, or none."""
        tables = self.tables
        metrics = [
            {
                "run_uuid": run.run_id,
                "key": metric.key,
                "value": metric.value,
                "timestamp": metric.timestamp_ms,
                "step": metric.step,
                "is_nan": False,
            }
            for run in runs
            for metric in run.metrics
        ]
        rows: Sequence[tuple[Any, list[dict[str, Any]]]] = (
            (tables.SqlRun, [_run_row(experiment, run) for run in runs]),
            (tables.SqlParam, _pairs((run.run_id, run.params) for run in runs)),
            (tables.SqlTag, _pairs((run.run_id, {"mlflow.runName": run.name, **run.tags}) for run in runs)),
            (tables.SqlMetric, metrics),
            (tables.SqlLatestMetric, metrics),
        )
        with self.engine.begin() as connection:
            for table, found in rows:
                if found:
                    connection.execute(self.sqlalchemy.insert(table), found)


def _run_row(experiment: Experiment, run: FinishedRun) -> dict[str, Any]:
    return {
        "run_uuid": run.run_id,
        "name": run.name,
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "user_id": "",
        "status": run.status,
        "start_time": run.started_ms,
        "end_time": run.ended_ms,
        "deleted_time": None,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": run.artifact_uri,
        "experiment_id": int(experiment.id),
    }


def _pairs(runs: Any) -> list[dict[str, Any]]:
    return [{"run_uuid": run_id, "key": key, "value": value} for run_id, pairs in runs for key, value in pairs.items()]
