"""Real parts that several tests use; each is started once for as many tests as can share it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import opened_browser
from tests.integration.mlflow_server import MlflowServer
from tests.integration.postgres_server import PostgresServer
from tests.integration.real_ollama.server import OllamaServer, default_cache, unsupported_reason
from tests.integration.recommender.databases import new_schema
from tipbench.bench.engines.weights import KNOWN, pull, weights_path
from tipbench.core.settings import Settings

LONGEST = (
    "test_airflow.py",
    "test_wheel.py",
    "test_quick_start.py",
    "integration/test_panel.py",
    "test_model_judge.py",
    "test_deployed.py",
    "test_watched.py",
    "test_nothing_lost.py",
    "test_recommend_at_once.py",
    "test_stores.py",
    "test_whole_story.py",
    "test_simulation_jobs.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: two files of tests go at a time, and nobody shall wait for one of them in the end."""

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return next((number for number, name in enumerate(LONGEST) if file.endswith(name)), len(LONGEST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The folder that `make setup` installs the embedded model's weights into; installed here if need be."""
    folder = Settings().home / "weights"
    pull(folder, KNOWN["smollm2:135m"])
    return folder


@pytest.fixture(scope="session")
def weights_file(weights_folder: Path) -> Path:
    return weights_path(weights_folder, "smollm2:135m")


@pytest.fixture
def weights(home: Path, weights_file: Path) -> Path:
    """The embedded model's weights, in this test's home."""
    target = home / "weights" / weights_file.name
    target.parent.mkdir()
    target.symlink_to(weights_file)
    return target


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def ollama() -> Iterator[OllamaServer]:
    """A real Ollama with three models."""
    if reason := unsupported_reason():
        pytest.skip(reason)
    with OllamaServer.start(default_cache()) as server:
        yield server


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A real MLflow server with served artifacts, for all who keep to experiments of their own."""
    own = tmp_path_factory.getbasetemp()
    of_all_workers = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with MlflowServer.shared(of_all_workers / "mlflow") as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL, for all who keep to a schema of their own and leave it running."""
    with PostgresServer.start() as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """Of tables that nobody else has."""
    return new_schema(postgres)
