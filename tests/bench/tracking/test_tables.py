"""What plain SQL writes into MLflow's tables is what MLflow's own calls would have written, and reads the same."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.bench.tracking.store_contract import StoreContract
from tipbench.bench.tracking import embedded, mlflow_store, tables
from tipbench.bench.tracking import store as store_module
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, FinishedRun, Metric, StoredRun
from tipbench.bench.tracking.mlflow_store import MlflowStore
from tipbench.bench.tracking.store import RunChange, RunDraft, RunStore
from tipbench.bench.tracking.write_markers import WRITTEN
from tipbench.core.errors import TrackingError

DRAFT = RunDraft(
    name="m × v1 × s1",
    started_ms=1_000,
    ended_ms=2_000,
    tags={"tipbench.kind": "cell", "odd": "émoji 😀 'quoted'"},
    params={"model": "m", "temperature": "0.7"},
    metrics={"gen/load_s": 0.25, "answer/candidates": 5.0},
    texts={"raw.txt": "an answer\x00 with a NUL", "rubric.md": "# Rubric"},
)


class TestMlflowsOwnCalls(StoreContract):
    """A database of a schema that was never tested is used through MLflow's own store: the whole contract again."""

    @pytest.fixture
    def api(self, database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedMlflow]:
        monkeypatch.setattr(embedded, "TESTED_SCHEMAS", frozenset({"of another version"}))
        opened = EmbeddedMlflow(f"{SCHEME}{database}")
        assert isinstance(opened._tables(), MlflowStore)
        yield opened
        opened.close()

    def test_all_pages_are_read(self, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mlflow_store, "_PAGE", 3)
        experiment = store.ensure_experiment("pages", {})
        store.write_runs(experiment, [replace(DRAFT, started_ms=n // 2) for n in range(7)])
        assert len(store.runs(experiment, {})) == 7


def _rows(database: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


def _by_name(store: RunStore, name: str) -> list[StoredRun]:
    return [run for run in store.runs(store.experiment("x"), {}) if run.tags["mlflow.runName"] == name]


def test_the_columns_are_those_of_mlflows_own_definitions() -> None:
    from mlflow.store.tracking.dbmodels import models

    definitions = {table.name: table for table in models.Base.metadata.tables.values()}
    for name, columns in tables.WRITTEN_COLUMNS.items():
        assert sorted(columns) == sorted(column.name for column in definitions[name].columns)


def test_the_rows_are_those_that_mlflow_writes(database: Path, tmp_path: Path) -> None:
    """Column by column, over all tables that are written."""
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{database}"))
    ours = store.ensure_experiment("x", {"tipbench.suite": "tip"})
    store.write_run(ours, replace(DRAFT, texts={}))
    mark = store.experiment("x").tags[WRITTEN]
    store.close()
    other = tmp_path / "by-mlflow.db"
    made = MlflowStore(f"{SCHEME}{other}", tmp_path / "by-mlflow-artifacts")
    theirs = made.create_experiment("x", {"tipbench.suite": "tip"})
    assert theirs is not None
    run_id, _ = made.create_run(theirs.id, DRAFT.name, DRAFT.started_ms, DRAFT.tags)
    metrics = [Metric(key, value, DRAFT.ended_ms) for key, value in DRAFT.metrics.items()]
    made.log_batch(run_id, metrics, DRAFT.params, {})
    made.end_run(run_id, "FINISHED", DRAFT.ended_ms)
    for key, value in (("gone", "1"), (WRITTEN, "another"), (WRITTEN, mark)):
        made.tag_experiment(theirs.id, key, value)
    made.untag_experiment(theirs.id, "gone")
    made.close()
    differing = {"run_uuid", "artifact_uri", "artifact_location", "creation_time", "last_update_time"}
    for table in tables.WRITTEN_COLUMNS:
        rows = [
            sorted(
                [(key, value) for key, value in sorted(row.items()) if key not in differing]
                for row in _rows(path, table)
            )
            for path in (database, other)
        ]
        assert rows[0] == rows[1], table
    for path, artifacts in ((database, "mlflow-artifacts"), (other, "by-mlflow-artifacts")):
        [run] = _rows(path, "runs")
        assert run["artifact_uri"] == f"{tmp_path / artifacts}/{run['experiment_id']}/{run['run_uuid']}/artifacts"


def test_mlflow_reads_what_was_written_and_extended(database: Path, tmp_path: Path) -> None:
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{database}"))
    experiment = store.ensure_experiment("x", {})
    store.write_runs(experiment, [replace(DRAFT, name=f"bulk {n}", started_ms=n) for n in range(3)])
    [first] = _by_name(store, "bulk 0")
    store.extend_run(first, {"judge_pending": "false"}, {"composite": 12.0}, at_ms=5_000)
    [first] = _by_name(store, "bulk 0")
    store.extend_run(first, {"judge_pending": "really false"}, {"composite": 9.0}, at_ms=5_000)
    quick = store.runs(experiment, {"tipbench.kind": "cell"})
    experiment = store.experiment("x")
    store.close()
    mlflow = MlflowStore(f"{SCHEME}{database}", tmp_path / "mlflow-artifacts")
    assert list(mlflow.search_runs(experiment.id, {"tipbench.kind": "cell"})) == quick
    assert mlflow.find_experiment("x") == experiment
    assert [entry.name for entry in mlflow.list_experiments("")] == ["x", "Default"]
    mlflow.close()
    assert quick[0].metrics["composite"] == 9.0
    assert quick[0].tags["judge_pending"] == "really false"


@pytest.mark.parametrize(
    ("step", "timestamp", "value", "shown"),
    [(2, 10, 1.0, 1.0), (1, 11, 1.0, 1.0), (1, 10, 6.0, 6.0), (1, 10, 4.0, 5.0), (0, 99, 9.0, 5.0), (1, 10, 5.0, 5.0)],
)
def test_which_value_of_a_metric_is_shown_is_decided_as_mlflow_does(
    api: EmbeddedMlflow, database: Path, tmp_path: Path, step: int, timestamp: int, value: float, shown: float
) -> None:
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    run_ids = [store.write_run(experiment, replace(DRAFT, texts={}, metrics={})) for _ in range(2)]
    mlflow = MlflowStore(f"{SCHEME}{database}", tmp_path / "mlflow-artifacts")
    writers: tuple[EmbeddedMlflow | MlflowStore, ...] = (api, mlflow)
    for writer, run_id in zip(writers, run_ids, strict=True):
        for metric in (Metric("tone", 5.0, 10, 1), Metric("tone", value, timestamp, step)):
            writer.log_batch(run_id, [metric], {}, {})
    mlflow.close()
    assert [run.metrics["tone"] for run in store.runs(experiment, {})] == [shown, shown]


def test_tags_and_params_of_any_content_come_back(store: RunStore) -> None:
    odd = {
        "plain": "1",
        "empty": "",
        'a "quoted" \\ key': "\"'\\\x01\x1f\x7f\u2028\n\t/",
        "unicode": "é 😀 \ufeff",
        "json": '{"a": [1]}',
    }
    numbers = {"tiny": 5e-324, "third": 1 / 3, "large": 2.0**70, "negative": -0.1}
    experiment = store.ensure_experiment("x", {})
    store.write_run(experiment, replace(DRAFT, texts={}, tags=odd, params=odd, metrics=numbers))
    store.write_run(experiment, replace(DRAFT, texts={}, tags={}, params={}, metrics={}))
    with_all, with_none = sorted(store.runs(experiment, {}), key=lambda run: -len(run.params))
    assert odd.items() <= with_all.tags.items()
    assert (with_all.params, with_all.metrics) == (odd, numbers)
    assert (with_none.params, with_none.metrics, with_none.steps) == ({}, {}, {})


def test_a_bulk_is_written_whole_or_not_at_all(api: EmbeddedMlflow, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    place = api.reserve_run(experiment)
    monkeypatch.setattr(api, "reserve_run", lambda _: place)  # two runs of one id: the second can't be written
    with pytest.raises(TrackingError):
        store.write_runs(experiment, [DRAFT, replace(DRAFT, name="second")])
    assert store.runs(experiment, {}) == []


def test_several_transactions_end_with_the_first_that_fails(
    api: EmbeddedMlflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_RUNS_AT_ONCE", 2)
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    insert, drafts = api.insert_runs, [replace(DRAFT, name=f"{n}", started_ms=n) for n in range(7)]
    goes = count()

    def breaks(experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        if next(goes) == 1:
            raise TrackingError("the disk is full")
        insert(experiment, runs)

    monkeypatch.setattr(api, "insert_runs", breaks)
    with pytest.raises(TrackingError, match="the disk is full"):
        store.write_runs(experiment, drafts)
    assert [run.tags["mlflow.runName"] for run in store.runs(experiment, {})] == ["0", "1"]
    store.write_runs(experiment, drafts[2:])
    found = store.runs(experiment, {})
    assert [run.tags["mlflow.runName"] for run in found] == [draft.name for draft in drafts]
    assert [store.text(run, "raw.txt") for run in found] == [DRAFT.texts["raw.txt"]] * 7


def test_a_run_that_is_gone_can_not_be_extended(api: EmbeddedMlflow) -> None:
    store = RunStore(api)
    store.write_run(store.ensure_experiment("x", {}), DRAFT)
    [run] = _by_name(store, DRAFT.name)
    store.remove_run(run)
    with pytest.raises(TrackingError, match=r"no run .*deleted"):
        store.extend_run(run, {"late": "tag"}, {"composite": 1.0})


def test_many_runs_are_extended_together_or_not_at_all(api: EmbeddedMlflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_RUNS_AT_ONCE", 2)
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    store.write_runs(experiment, [replace(DRAFT, texts={}, started_ms=number) for number in range(5)])
    runs = store.runs(experiment, {})
    changes = [RunChange(run, {"late": str(number)}, {"composite": float(number)}) for number, run in enumerate(runs)]
    store.remove_run(runs[3])
    with pytest.raises(TrackingError, match=f"no run {runs[3].run_id}, or it was deleted"):
        store.extend_runs(experiment, changes)
    assert not any("late" in run.tags for run in store.runs(experiment, {}))
    assert store.extend_runs(experiment, (change for change in changes if change.run is not runs[3])) == 4
    found = store.runs(experiment, {})
    assert [(run.tags["late"], run.metrics["composite"]) for run in found] == [
        *(("0", 0.0), ("1", 1.0), ("2", 2.0), ("4", 4.0)),
    ]
    assert store.extend_runs(experiment, []) == 0

    def breaks() -> Iterator[RunChange]:
        yield from (RunChange(run, {}, {"composite": -2.0}) for run in found)
        raise TrackingError("no more")

    with pytest.raises(TrackingError, match="no more"):
        store.extend_runs(experiment, breaks())
    store.extend_runs(experiment, [RunChange(run, {}, {"composite": -1.0}) for run in found])
    with closing(sqlite3.connect(api.path)) as database:
        written = database.execute("SELECT DISTINCT value FROM metrics WHERE key = 'composite' AND value < 0")
        assert written.fetchall() == [(-1.0,)], "changes that break off leave nothing"
    assert {run.metrics["composite"] for run in store.runs(experiment, {})} == {-1.0}


def test_a_disk_that_is_full_halfway_leaves_nothing_of_many_runs(
    api: EmbeddedMlflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite then ends the transaction by itself, and what was waiting to be written would be committed alone."""
    monkeypatch.setattr(tables, "_RUNS_AT_ONCE", 5)
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    store.write_runs(experiment, [replace(DRAFT, texts={}, started_ms=number) for number in range(40)])
    runs = store.runs(experiment, {})
    assert isinstance(api._sql, tables.SqliteTables)
    connection = api._sql._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    for more in (2, 6, 10, 14):
        connection.execute(f"PRAGMA max_page_count = {pages + more}")
        with pytest.raises(TrackingError, match="full"):
            store.extend_runs(experiment, [RunChange(run, {"late": "x" * 1_500}, {"composite": 1.0}) for run in runs])
        found = store.runs(experiment, {})
        assert not any("late" in run.tags or "composite" in run.metrics for run in found)


def test_more_runs_than_are_read_at_once(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_RUNS_AT_ONCE", 3)
    experiment = store.ensure_experiment("x", {})
    store.write_runs(experiment, [replace(DRAFT, texts={}, started_ms=n % 4) for n in range(10)])
    assert [run.started_ms for run in store.runs(experiment, {})] == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
