"""MLflow's empty tables as SQL, so that a new database is there in milliseconds: MLflow itself takes seconds.

`mlflow_schema.sql` is data, made from a database that MLflow created. It is used only if the installed MLflow has
exactly that schema revision. To make it again, for another MLflow:

    python -m tipbench.bench.tracking.mlflow_schema
"""

import re
import shlex
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from tipbench.bench.tracking.tables import schema_of
from tipbench.core.errors import TrackingError

_FILE = Path(__file__).with_suffix(".sql")
_REVISION = re.compile(r"^-- revision (\w+)$", re.MULTILINE)
_MIGRATIONS = "store/db_migrations/versions"
_IDENTIFIER = re.compile(r"^(down_)?revision\b.*$", re.MULTILINE)
_QUOTED = re.compile(r"[\"'](\w+)[\"']")


@cache
def is_installed() -> bool:
    """Whether the installed MLflow would create exactly these tables. MLflow is not imported, only its files read."""
    return _heads(_migrations()) == set(_REVISION.findall(_FILE.read_text(encoding="utf-8")))


def create_tables(database: sqlite3.Connection) -> None:
    """Create the tables, with the rows that MLflow writes into them, in an empty database."""
    database.executescript(_FILE.read_text(encoding="utf-8"))


def _migrations() -> Path | None:
    spec = find_spec("mlflow")
    return Path(spec.submodule_search_locations[0]) / _MIGRATIONS if spec and spec.submodule_search_locations else None


def _heads(folder: Path | None) -> set[str]:
    """Return the revisions that no other migration is based on: one, the schema that a new database gets."""
    revisions, bases = _revisions(folder)
    return revisions - bases


def _revisions(folder: Path | None) -> tuple[set[str], set[str]]:
    """Return the revisions of all migrations, and those that they are based on."""
    revisions: set[str] = set()
    bases: set[str] = set()
    for path in folder.glob("*.py") if folder else ():
        for line in _IDENTIFIER.finditer(path.read_text(encoding="utf-8")):
            (bases if line[1] else revisions).update(_QUOTED.findall(line[0]))
    return revisions, bases


def check_schema(path: Path) -> None:
    """Raise TrackingError if a database has another schema than the installed MLflow's.

    MLflow would refuse some, and change others as soon as it opens them, without a backup.
    """
    revision = schema_of(path) if path.exists() else None
    revisions, bases = _revisions(_migrations())
    if revision is None or not revisions or revision in revisions - bases:
        return
    made = f"the MLflow database {path} was made by"
    installed = f"version of MLflow than {metadata.version('mlflow')}, which is installed"
    if revision in bases:
        upgrade = f"mlflow db upgrade {shlex.quote(f'sqlite:///{path}')}"
        raise TrackingError(f"{made} an older {installed}. Back it up, then run: {upgrade}")
    raise TrackingError(
        f"{made} a newer {installed}, and was left unchanged: use the version that made it, or another database with "
        "--mlflow-url"
    )


def dump(database: sqlite3.Connection) -> str:
    """Return the SQL that creates the tables of a database which MLflow has just created."""
    (revision,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
    made = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    statements = [sql for _, name, sql in made if not name.startswith("sqlite_")]
    # The location and the times are those of the new database; whoever creates it sets them.
    database.execute("UPDATE experiments SET artifact_location = '', creation_time = 0, last_update_time = 0")
    for kind, name, _ in made:
        if kind == "table" and not name.startswith("sqlite_"):
            columns = [column for _, column, *_ in database.execute(f'PRAGMA table_info("{name}")')]
            quoted = " || ', ' || ".join(f'quote("{column}")' for column in columns)
            rows = database.execute(f'SELECT {quoted} FROM "{name}"').fetchall()
            statements += [f'INSERT INTO "{name}" VALUES ({values})' for (values,) in rows]
    head = f"-- MLflow's tables, as its migrations create them in an empty SQLite file.\n-- revision {revision}\n"
    return head + ";\n".join(["BEGIN", *statements, "COMMIT"]) + ";\n"


def _write() -> None:
    from tipbench.bench.tracking.mlflow_store import MlflowStore

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        MlflowStore(f"sqlite:///{path}", Path(folder)).close()
        with closing(sqlite3.connect(path)) as database:
            _FILE.write_text(dump(database), encoding="utf-8")


if __name__ == "__main__":
    _write()
