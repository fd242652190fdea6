"""A stand-in for an engine's server."""

from collections.abc import Iterator

import pytest

from tests.bench.engines.stand_in import StandIn


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running
