"""A stand-in for an engine's server, and the embedded engine's real weights."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.engines.stand_in import StandIn
from tipbench.engines.weights import weights_path

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on busy machines
settings.load_profile("patient")


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


@pytest.fixture(scope="session")
def weights_file(weights_folder: Path) -> Path:
    return weights_path(weights_folder, "smollm2:135m")
