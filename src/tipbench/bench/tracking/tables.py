"""Reads and writes MLflow's tables in a SQLite file with plain SQL.

MLflow's own store commits several times per run, and importing it takes two seconds and 150 MB. This module uses the
few tables that tipbench needs directly, as MLflow created them: it writes many finished runs in one transaction, and
reads without the import. It does so only for the schema versions it was tested with; for any other version,
`mlflow_store` calls MLflow itself.
"""

import json
import sqlite3
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from sys import intern
from typing import Any

from tipbench.bench.tracking.interface import (
    NEWEST_AT_ONCE,
    Addition,
    Experiment,
    FinishedRun,
    Metric,
    Names,
    StoredRun,
)
from tipbench.core.errors import DatabaseBusy, TrackingError
from tipbench.core.sqlite import ConnectionLock, connect

# The alembic revisions that tests/bench/tracking/test_tables.py has passed with.
TESTED_SCHEMAS = frozenset({"dc11669786a5"})
# The columns that are written: all columns of these tables. A test compares them with MLflow's own definitions.
WRITTEN_COLUMNS = {
    "experiments": (
        *("experiment_id", "name", "artifact_location", "lifecycle_stage", "creation_time", "last_update_time"),
        "workspace",
    ),
    "experiment_tags": ("key", "value", "experiment_id"),
    "runs": (
        *("run_uuid", "name", "source_type", "source_name", "entry_point_name", "user_id", "status", "start_time"),
        *("end_time", "deleted_time", "source_version", "lifecycle_stage", "artifact_uri", "experiment_id"),
    ),
    "params": ("key", "value", "run_uuid"),
    "tags": ("key", "value", "run_uuid"),
    "metrics": ("key", "value", "timestamp", "step", "is_nan", "run_uuid"),
    "latest_metrics": ("key", "value", "timestamp", "step", "is_nan", "run_uuid"),
}
COMMAND_BUSY_S = 60.0  # how long a command waits for another writer
_VALUES_AT_ONCE = 6_000  # per statement, if this build of SQLite accepts as many
_RUNS_AT_ONCE = 500
_Rows = Sequence[tuple[Any, ...]]


def schema_of(path: Path, busy_s: float = COMMAND_BUSY_S) -> str | None:
    """Return the file's schema version; None if it is empty. Raise TrackingError if it isn't an MLflow database."""
    with ConnectionLock(path), closing(connect(path, busy_s)) as probe:
        tables = {name for (name,) in probe.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return None
        if "alembic_version" not in tables:
            raise TrackingError(f"{path} is not an MLflow database; it was left unchanged")
        row = probe.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(row[0]) if row else None


class SqliteTables:
    """The tables of one file. Raises SQLite's errors and DatabaseBusy, which the caller translates."""

    def __init__(self, path: Path, artifacts: Path, busy_s: float = COMMAND_BUSY_S) -> None:
        self._artifacts = artifacts
        self._busy_s = busy_s
        self._lock = ConnectionLock(path, busy_s)
        self._connection = connect(path, busy_s)

    def close(self) -> None:
        with suppress(DatabaseBusy), self._lock.with_timeout(1):  # a thread that waits for the file may hold the lock
            self._connection.close()

    def version(self) -> str:
        """Return a value that changes with every write: other connections' writes change one number, ours the other."""
        with self._lock:
            (others,) = self._connection.execute("PRAGMA data_version").fetchone()
            return f"{others}/{self._connection.total_changes}"

    def find_experiment(self, name: str) -> Experiment | None:
        found = self._experiments("name = ?", name)
        return found[0] if found else None

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        now = round(time.time() * 1000)
        with self.transaction() as run:
            if run("SELECT 1 FROM experiments WHERE name = ?", (name,)).fetchone():
                return None
            number = run(_insert("experiments"), (None, name, None, "active", now, now, "default")).lastrowid
            location = f"{self._artifacts}/{number}"
            run("UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?", (location, number))
            for key, value in tags.items():
                run(_insert("experiment_tags"), (key, value, number))
        return self.find_experiment(name)

    def tag_experiment(self, experiment_id: str, key: str, value: str, timeout_s: float | None = None) -> None:
        statement = f"{_insert('experiment_tags')} ON CONFLICT DO UPDATE SET value = excluded.value"
        with self._waiting_at_most(timeout_s), self.transaction() as run:
            run(statement, (key, value, int(experiment_id)))

    def untag_experiment(self, experiment_id: str, key: str) -> None:
        with self.transaction() as run:
            run("DELETE FROM experiment_tags WHERE experiment_id = ? AND key = ?", (int(experiment_id), key))

    def list_experiments(self, prefix: str) -> list[Experiment]:
        found = self._experiments("lifecycle_stage = ?", "active")
        return [experiment for experiment in found if experiment.name.startswith(prefix)]

    def insert_runs(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        """Insert all of the runs, or none."""
        metrics = [
            (metric.key, metric.value, metric.timestamp_ms, metric.step, 0, run.run_id)
            for run in runs
            for metric in run.metrics
        ]
        rows: Mapping[str, Sequence[tuple[Any, ...]]] = {
            "runs": [_run_row(experiment, run) for run in runs],
            "params": [(key, value, run.run_id) for run in runs for key, value in run.params.items()],
            "tags": [
                (key, value, run.run_id)
                for run in runs
                for key, value in {"mlflow.runName": run.name, **run.tags}.items()
            ],
            "metrics": metrics,
            "latest_metrics": metrics,
        }
        with self.transaction():
            for table, values in rows.items():
                self._insert_rows(table, values)

    def _insert_rows(self, table: str, rows: _Rows, on_conflict: str = "") -> None:
        """Insert many rows with each statement: with one each, the thread would give way to others after every row.

        The caller's transaction is rolled back after an error, so a statement needs no journal of its own (OR FAIL).
        """
        columns = len(WRITTEN_COLUMNS[table])
        most = self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        at_once = min(_VALUES_AT_ONCE, most) // columns
        for start in range(0, len(rows), at_once):
            chunk = rows[start : start + at_once]
            more = f", ({', '.join('?' * columns)})" * (len(chunk) - 1)
            statement = f"{_insert(table, 'INSERT OR FAIL')}{more} {on_conflict}"
            self._connection.execute(statement, [value for row in chunk for value in row])

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        with self.transaction():
            self.extend_runs([Addition(run_id, metrics, tags)])
            self._connection.executemany(_PARAM, [(key, value, run_id) for key, value in params.items()])

    def extend_runs(self, additions: Iterable[Addition]) -> None:
        """Add to all of the runs, or to none; raise TrackingError if one is gone.

        A thread writes while this one takes the next additions. Its statements are of many rows each: after one with a
        single row, it would wait for this thread.
        """
        waiting = iter(additions)
        with self.transaction(), ThreadPoolExecutor(1, "extend") as pool:
            writing: deque[Future[None]] = deque()
            while some := list(islice(waiting, _RUNS_AT_ONCE)):
                tags = [(key, value, one.run_id) for one in some for key, value in one.tags.items()]
                metrics = [
                    (metric.key, metric.value, metric.timestamp_ms, metric.step, 0, one.run_id)
                    for one in some
                    for metric in one.metrics
                ]
                run_ids = [one.run_id for one in some]
                if not writing and len(some) < _RUNS_AT_ONCE:  # these are all
                    self._extend(run_ids, tags, metrics)
                    return
                writing.append(pool.submit(self._extend, run_ids, tags, metrics))
                if len(writing) > 2:  # one that is being written, and the next, so that the thread never waits for us
                    writing.popleft().result()
            for last in writing:
                last.result()

    def _extend(self, run_ids: Sequence[str], tags: _Rows, metrics: _Rows) -> None:
        if not self._connection.in_transaction:  # a full disk ended it; each statement would be committed by itself
            raise TrackingError("the runs before these could not be written")
        # One row, whatever is found: for each row that is fetched, this thread would wait for the other.
        there = f"{_one_of('run_uuid', run_ids)} AND lifecycle_stage = 'active'"
        query = f"SELECT json_group_array(run_uuid) FROM runs WHERE {there}"
        (found,) = self._connection.execute(query, run_ids).fetchone()
        for run_id in set(run_ids).difference(json.loads(found)):
            raise TrackingError(f"there is no run {run_id}, or it was deleted")
        self._insert_rows("tags", tags, _TAG)
        (last,) = self._connection.execute("SELECT coalesce(max(rowid), 0) FROM metrics").fetchone()
        self._insert_rows("metrics", metrics, _METRIC)
        self._connection.execute(_LATEST_OF_NEW, (last,))

    def search_runs(
        self,
        experiment_id: str,
        tags: Mapping[str, str],
        omit: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        only: Names | None = None,
        newest_first: bool = False,
    ) -> Iterator[StoredRun]:
        """Yield the runs, holding only some hundreds of them in memory at a time."""
        has_tag = (
            " AND EXISTS (SELECT 1 FROM tags WHERE tags.run_uuid = runs.run_uuid AND tags.key = ? AND tags.value = ?)"
        )
        query = (
            f"SELECT run_uuid FROM runs WHERE experiment_id = ? AND lifecycle_stage = 'active'{has_tag * len(tags)} "
            + (f"AND {_one_of('run_uuid', run_ids)} " if run_ids else "")
            + ("ORDER BY start_time DESC, run_uuid DESC" if newest_first else "ORDER BY start_time, run_uuid")
        )
        values = [part for pair in tags.items() for part in pair]
        ids = [run_id for (run_id,) in self._read(query, [int(experiment_id), *values, *run_ids])]
        at_once = NEWEST_AT_ONCE if newest_first else _RUNS_AT_ONCE
        for start in range(0, len(ids), at_once):
            chunk = ids[start : start + at_once]
            if only:
                yield from self._parts(experiment_id, chunk, only)
            else:
                yield from self._runs(experiment_id, chunk, omit)

    def _parts(self, experiment_id: str, ids: Sequence[str], only: Names) -> Iterator[StoredRun]:
        """Yield the runs with these names alone: a seventh to a third of the time that whole runs take."""
        among = _one_of("run_uuid", ids)
        parts = " || ',' || ".join(
            f"(SELECT json_group_object(key, value) FROM {table} WHERE {table}.run_uuid = runs.run_uuid "
            f"AND {_one_of('key', names)})"
            if names
            else "'{}'"
            for table, names in (("tags", only.tags), ("params", only.params))
        )
        with self._lock:  # both queries see one state of the database
            rows = self._read(
                f"SELECT run_uuid, status, start_time, artifact_uri, {parts} FROM runs WHERE {among}",
                [*only.tags, *only.params, *ids],
            )
            metrics, steps = self._latest(f"{among} AND {_one_of('key', only.metrics)}", [*ids, *only.metrics])
        values = iter(json.loads(f"[{','.join(row[-1] for row in rows)}]"))
        found = {row[0]: (row, next(values), next(values)) for row in rows}
        for run_id in ids:
            if run_id in found:
                (_, status, started_ms, artifact_uri, _), tags, params = found[run_id]
                run_values = (tags, params, metrics[run_id], steps[run_id])
                yield StoredRun(run_id, status, started_ms or 0, artifact_uri, *run_values, experiment_id)

    def _runs(self, experiment_id: str, ids: Sequence[str], omit: Sequence[str]) -> Iterator[StoredRun]:
        among = _one_of("run_uuid", ids)
        wanted = among + "".join(f" AND key NOT GLOB '{start}*'" for start in omit)
        with self._lock:  # all four queries see one state of the database
            runs = self._read(f"SELECT run_uuid, status, start_time, artifact_uri FROM runs WHERE {among}", ids)
            tags = self._texts("tags", wanted, ids)
            params = self._texts("params", among, ids)
            metrics, steps = self._latest(wanted, ids, with_steps=not omit)
        found = {row[0]: row for row in runs}
        for run_id in ids:
            if run_id in found:
                _, status, started_ms, artifact_uri = found[run_id]
                run_values = (tags.get(run_id, {}), params.get(run_id, {}), metrics[run_id], steps[run_id])
                yield StoredRun(run_id, status, started_ms or 0, artifact_uri, *run_values, experiment_id)

    def _texts(self, table: str, condition: str, ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return key-value pairs by run. SQLite aggregates a run's rows: fetching each row takes half as long again."""
        query = f"SELECT run_uuid, json_group_object(key, value) FROM {table} WHERE {condition} GROUP BY run_uuid"
        rows = self._read(query, ids)
        found = json.loads(f"[{','.join(texts for _, texts in rows)}]")  # one call, so that equal keys share one string
        return {run_id: texts for (run_id, _), texts in zip(rows, found, strict=True)}

    def _latest(
        self, condition: str, values: Sequence[str], with_steps: bool = True
    ) -> tuple[defaultdict[str, dict[str, float]], defaultdict[str, dict[str, int]]]:
        """Return metrics and, if wanted, steps, by run. Read as rows: SQLite's JSON drops numbers' last digits."""
        metrics: defaultdict[str, dict[str, float]] = defaultdict(dict)
        steps: defaultdict[str, dict[str, int]] = defaultdict(dict)
        if not with_steps:
            for run_id, key, value in self._connection.execute(
                f"SELECT run_uuid, key, value FROM latest_metrics WHERE {condition} AND is_nan = 0", values
            ):
                metrics[run_id][intern(key)] = value
            return metrics, steps
        query = f"SELECT run_uuid, key, value, step FROM latest_metrics WHERE {condition} AND is_nan = 0"
        for run_id, name, value, step in self._connection.execute(query, values):
            key = intern(name)
            metrics[run_id][key] = value
            steps[run_id][key] = step
        return metrics, steps

    def _experiments(self, condition: str, value: str) -> list[Experiment]:
        with self._lock:
            rows = self._read(
                "SELECT experiment_id, name, artifact_location, lifecycle_stage, creation_time FROM experiments "
                f"WHERE {condition} AND workspace = 'default'",
                [value],
            )
            tags = _by_owner(
                self._read(
                    "SELECT experiment_id, key, value FROM experiment_tags JOIN experiments USING (experiment_id) "
                    f"WHERE {condition}",
                    [value],
                )
            )
        return [
            Experiment(str(number), name, location, stage == "deleted", created or 0, tags[number])
            for number, name, location, stage, created in rows
        ]

    def _read(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _waiting_at_most(self, timeout_s: float | None) -> Iterator[None]:
        """Wait for other writers no longer than this in the block; None: as long as elsewhere."""
        if timeout_s is None:
            yield
            return
        with self._lock.with_timeout(timeout_s):
            self._connection.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")
            try:
                yield
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {round(self._busy_s * 1000)}")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Run the block as one transaction and yield its `execute`; a nested block joins the outer transaction."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection.execute
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has already ended it
                    self._connection.execute("ROLLBACK")
                raise


def _one_of(column: str, values: Sequence[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(values))})"


def _insert(table: str, verb: str = "INSERT") -> str:
    columns = WRITTEN_COLUMNS[table]
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_PARAM = _insert("params")
# What becomes of rows that are there already
_TAG = "ON CONFLICT DO UPDATE SET value = excluded.value"
_METRIC = "ON CONFLICT DO NOTHING"
# MLflow shows the value with the highest (step, timestamp, value).
_LATEST = (
    "ON CONFLICT DO UPDATE SET value = excluded.value, timestamp = excluded.timestamp, "
    "step = excluded.step, is_nan = excluded.is_nan WHERE (excluded.step, excluded.timestamp, excluded.value) > "
    "(latest_metrics.step, latest_metrics.timestamp, latest_metrics.value)"
)

_LATEST_OF_NEW = (
    f"INSERT OR FAIL INTO latest_metrics ({', '.join(WRITTEN_COLUMNS['latest_metrics'])}) "
    f"SELECT {', '.join(WRITTEN_COLUMNS['latest_metrics'])} FROM metrics WHERE rowid > ? {_LATEST}"
)


def _run_row(experiment: Experiment, run: FinishedRun) -> tuple[Any, ...]:
    source = ("UNKNOWN", "", "", "")
    times = (run.started_ms, run.ended_ms, None)
    return (run.run_id, run.name, *source, run.status, *times, "", "active", run.artifact_uri, int(experiment.id))


def _by_owner(rows: Any) -> defaultdict[Any, dict[str, Any]]:
    found: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
    for owner, key, value in rows:
        found[owner][key] = value
    return found
