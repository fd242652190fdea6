"""Real parts that several integration tests use."""

from collections.abc import Iterator

import pytest

from tests.integration.real_ollama.server import OllamaServer, default_cache, unsupported_reason


@pytest.fixture(scope="module")
def ollama() -> Iterator[OllamaServer]:
    """A real Ollama with three models."""
    if reason := unsupported_reason():
        pytest.skip(reason)
    with OllamaServer.start(default_cache()) as server:
        yield server
