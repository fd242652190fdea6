"""The tables that ship with tipbench are those that the installed MLflow creates, and are used with no other.

A database of another schema is refused with what to do, and left as it is.
"""

import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tipbench.bench.tracking import mlflow_schema
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.mlflow_process import MlflowProcess
from tipbench.bench.tracking.mlflow_store import MlflowStore
from tipbench.bench.tracking.new_database import NewDatabase
from tipbench.bench.tracking.tables import TESTED_SCHEMAS, schema_of
from tipbench.core.errors import TrackingError

_OF_THE_DATABASE = {"artifact_location", "creation_time", "last_update_time"}


@pytest.fixture(scope="module")
def by_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("by-mlflow")
    MlflowStore(f"sqlite:///{folder / 'mlflow.db'}", folder / "artifacts").close()
    return folder / "mlflow.db"


@pytest.fixture
def any_mlflow() -> Iterator[None]:
    """What is installed is looked up again."""
    mlflow_schema.is_installed.cache_clear()
    yield
    mlflow_schema.is_installed.cache_clear()


def _content(path: Path) -> dict[str, Any]:
    """Everything in a database. MLflow writes a table's constraints in another order each time: lines are sorted."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        made = {
            (kind, name): sorted(line.strip(" \t,") for line in (sql or "").splitlines())
            for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master")
        }
        rows = {
            name: [dict(row) for row in database.execute(f'SELECT * FROM "{name}"')]
            for kind, name in made
            if kind == "table"
        }
    for experiment in rows["experiments"]:
        for column in _OF_THE_DATABASE:
            del experiment[column]
    return {"made": made, "rows": rows}


def test_a_new_database_is_what_mlflow_makes(by_mlflow: Path, tmp_path: Path) -> None:
    """Tables, columns, constraints, indexes, triggers and rows; nothing was made by MLflow, so nothing is cached."""
    NewDatabase(tmp_path / "m.db", tmp_path / "artifacts", tmp_path / "cache").finish()
    assert _content(tmp_path / "m.db") == _content(by_mlflow)
    assert schema_of(tmp_path / "m.db") in TESTED_SCHEMAS
    assert not (tmp_path / "cache").exists()
    with closing(sqlite3.connect(tmp_path / "m.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        found = database.execute("SELECT artifact_location, creation_time, last_update_time FROM experiments")
        location, created, updated = found.fetchone()
    assert location == f"{tmp_path / 'artifacts'}/0"
    assert created == updated > 1_700_000_000_000


def test_the_command_writes_such_a_file(by_mlflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        closing(sqlite3.connect(f"file:{by_mlflow}?mode=ro", uri=True)) as made,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        made.backup(copy)
        (tmp_path / "again.sql").write_text(mlflow_schema.dump(copy))
    monkeypatch.setattr(mlflow_schema, "_FILE", tmp_path / "again.sql")
    with closing(sqlite3.connect(tmp_path / "m.db")) as database:
        mlflow_schema.create_tables(database)
    assert _content(tmp_path / "m.db") == _content(by_mlflow)


@pytest.mark.usefixtures("any_mlflow")
@pytest.mark.parametrize(
    ("migrations", "fits"),
    [
        ({"a": None, "dc11669786a5": "a"}, True),
        ({"a": None, "dc11669786a5": "a", "newer": "dc11669786a5"}, False),
        ({"a": None}, False),
        ({}, False),
    ],
)
def test_another_schema_is_left_to_mlflow(
    migrations: dict[str, str | None], fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision, base in migrations.items():
        down = "None" if base is None else f'"{base}"'
        (tmp_path / f"{revision}_x.py").write_text(f'revision = "{revision}"\ndown_revision = {down}\nx = "y"\n')
    monkeypatch.setattr(mlflow_schema, "_migrations", lambda: tmp_path)
    assert mlflow_schema.is_installed() is fits


@pytest.mark.usefixtures("any_mlflow")
def test_without_mlflow_no_schema_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_schema, "find_spec", lambda _name: None)
    assert not mlflow_schema.is_installed()


@pytest.fixture
def of_an_older_mlflow(tmp_path: Path) -> Path:
    """A database before the last migration, with an experiment."""
    import sqlalchemy
    from alembic import command
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base

    path = tmp_path / "with space" / "m.db"
    path.parent.mkdir()
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    config = _get_alembic_config(str(engine.url))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "75868b020152")
    engine.dispose()
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "INSERT INTO experiments (name, artifact_location, lifecycle_stage, workspace) VALUES (?, ?, ?, ?)",
            ("tip-bench-old", str(tmp_path / "artifacts"), "active", "default"),
        )
        database.commit()
    return path


def test_a_database_of_an_older_mlflow_opens_after_the_command_that_is_named(of_an_older_mlflow: Path) -> None:
    """MLflow itself would change it as soon as it opens it."""
    before = of_an_older_mlflow.read_bytes()
    said = r"m\.db was made by an older version of MLflow than 3\.\d+\.\d+, which is installed\. Back it up, then run: "
    with pytest.raises(TrackingError, match=said) as refused:
        EmbeddedMlflow(f"{SCHEME}{of_an_older_mlflow}")
    assert of_an_older_mlflow.read_bytes() == before
    command = shlex.split(str(refused.value).rpartition("run: ")[2])
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)  # it leaves its database open
    api = EmbeddedMlflow(f"{SCHEME}{of_an_older_mlflow}")
    assert "tip-bench-old" in {one.name for one in api.list_experiments("")}
    api.close()


def test_a_database_of_a_newer_mlflow_is_left_unchanged(by_mlflow: Path, tmp_path: Path) -> None:
    path = Path(shutil.copyfile(by_mlflow, tmp_path / "m.db"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE alembic_version SET version_num = 'feedfeedfeed'")
        database.commit()
    before = path.read_bytes()
    said = "by a newer version of MLflow than .* is installed, and was left unchanged: use the version that made it"
    with pytest.raises(TrackingError, match=said):
        EmbeddedMlflow(f"{SCHEME}{path}")
    with pytest.raises(TrackingError, match=said):
        MlflowProcess(path, tmp_path / "artifacts", {})
    assert path.read_bytes() == before
