"""A real PostgreSQL for those who ask for one."""

from collections.abc import Iterator

import pytest

from tests.bandit.store.databases import new_schema
from tests.integration.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """Of one module's own: some end it, or freeze it."""
    with PostgresServer.start() as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """Of tables that nobody else has."""
    return new_schema(postgres)
