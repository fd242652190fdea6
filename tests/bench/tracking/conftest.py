"""A fresh MLflow database for each test, copied from one that is made once (making its tables takes seconds)."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.new_database import NewDatabase
from tipbench.bench.tracking.store import RunStore


@pytest.fixture(scope="session")
def empty_database(empty_databases: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    NewDatabase(path, path.parent / "mlflow-artifacts", empty_databases).finish()
    return path


@pytest.fixture
def database(empty_database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(empty_database, tmp_path / "mlflow.db"))


@pytest.fixture
def api(database: Path) -> Iterator[EmbeddedMlflow]:
    opened = EmbeddedMlflow(f"{SCHEME}{database}")
    yield opened
    opened.close()


@pytest.fixture
def store(api: EmbeddedMlflow) -> RunStore:
    return RunStore(api)


@pytest.fixture
def experiment(store: RunStore) -> Experiment:
    return store.ensure_experiment("tip-bench-test", {})
