"""Folders of runs that no database knows, told from those that it will know in a moment."""

import os
import sqlite3
import time
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from tipbench.bench.tracking import artifacts
from tipbench.bench.tracking.artifacts import RunsBeingWritten, abandoned_folders, move_locations, new_run_id
from tipbench.core.errors import DatabaseBusy

HOUR = 3_600.0
KNOWN = "0123456789ab" + "0" * 20


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (run_uuid TEXT, artifact_uri TEXT)")
        connection.execute(
            "INSERT INTO runs VALUES (?, ?)", (KNOWN, f"{tmp_path}/mlflow-artifacts/1/{KNOWN}/artifacts")
        )
        connection.commit()
    return path


def folder(database: Path, run_id: str, age_s: float = 2 * HOUR) -> Path:
    made = database.with_name("mlflow-artifacts") / "1" / run_id
    (made / "artifacts").mkdir(parents=True)
    (made / "artifacts" / "raw.txt").touch()
    os.utime(made, (time.time() - age_s,) * 2)
    return made


def run_id(age_s: float) -> str:
    return f"{round((time.time() - age_s) * 1000):012x}{uuid.uuid4().hex[12:]}"


def test_only_our_own_that_are_an_hour_old_and_unknown_are_abandoned(database: Path) -> None:
    now = time.time()
    folder(database, KNOWN)
    folder(database, new_run_id(), age_s=0)
    folder(database, uuid.uuid4().hex)  # of another database, or of MLflow itself
    folder(database, "traces")
    left = folder(database, run_id(2 * HOUR))
    assert abandoned_folders(database, now, claim=False) == [left]
    assert left.exists()
    (claimed,) = abandoned_folders(database, now, claim=True) or []
    assert claimed == left.with_name(f".{left.name}.part")
    assert not left.exists()
    assert abandoned_folders(database, now, claim=True) == [claimed], "after a kill, it is known for what it is"


def test_no_mlflow_database_no_folders(tmp_path: Path) -> None:
    folder(tmp_path / "mlflow.db", run_id(2 * HOUR))
    assert abandoned_folders(tmp_path / "mlflow.db", time.time(), claim=True) == []


def test_nothing_is_abandoned_while_runs_are_being_written(database: Path) -> None:
    folder(database, run_id(2 * HOUR))
    one, other = RunsBeingWritten(database), RunsBeingWritten(database)
    one.begin("a")
    one.begin("b")
    other.begin("c")
    assert abandoned_folders(database, time.time(), claim=True) is None
    one.end(["a", "b"])
    assert abandoned_folders(database, time.time(), claim=True) is None
    other.close()
    assert len(abandoned_folders(database, time.time(), claim=True) or []) == 1


def test_a_run_waits_while_folders_are_claimed_but_not_for_ever(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = artifacts.stored_run_ids

    def meanwhile(path: Path) -> set[str] | None:
        with pytest.raises(DatabaseBusy):
            RunsBeingWritten(database).begin("a")
        return found(path)

    monkeypatch.setattr(artifacts, "_LOCK_TIMEOUT_S", 0.0)
    monkeypatch.setattr(artifacts, "stored_run_ids", meanwhile)
    assert abandoned_folders(database, time.time(), claim=True) == []


def test_locations_are_moved_whole_folders_at_a_time(database: Path, tmp_path: Path) -> None:
    old, new = tmp_path, Path("/srv/it's new")
    with closing(sqlite3.connect(database)) as connection:
        others = (f"{old}-other/1", "s3://bucket/1", f"file://{old}/mlflow-artifacts/2")
        for number, uri in enumerate(others):
            connection.execute("INSERT INTO runs VALUES (?, ?)", (str(number), uri))
        connection.commit()
    move_locations(database, old, new)
    with closing(sqlite3.connect(database)) as connection:
        found = [uri for (uri,) in connection.execute("SELECT artifact_uri FROM runs ORDER BY rowid")]
    assert found == [
        f"{new}/mlflow-artifacts/1/{KNOWN}/artifacts", f"{old}-other/1", "s3://bucket/1", "file:///srv/it%27s%20new/mlflow-artifacts/2",
    ]  # fmt: skip
