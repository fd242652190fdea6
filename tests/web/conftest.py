"""One site for each test, in that test's own home."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.small_app import Clock, Site, make_site


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(home: Path) -> Iterator[Site]:
    made = make_site(home)
    yield made
    made.access.tokens.close()
