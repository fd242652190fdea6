"""Real parts that several integration tests use."""

from collections.abc import Iterator

import pytest

from tests.integration.mlflow_server import MlflowServer
from tests.integration.real_ollama.server import OllamaServer, default_cache, unsupported_reason


@pytest.fixture(scope="module")
def ollama() -> Iterator[OllamaServer]:
    """A real Ollama with three models."""
    if reason := unsupported_reason():
        pytest.skip(reason)
    with OllamaServer.start(default_cache()) as server:
        yield server


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A real MLflow server with served artifacts, for all who keep to experiments of their own: a start takes 8 s."""
    with MlflowServer.start(tmp_path_factory.mktemp("mlflow")) as server:
        yield server
