"""A stand-in for an engine's server, and the embedded engine's real weights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.stand_in import StandIn
from tipbench.engines.weights import weights_path


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


@pytest.fixture(scope="session")
def weights_file(weights_folder: Path) -> Path:
    return weights_path(weights_folder, "smollm2:135m")
