"""A bench in every test's own home."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.server.jobs.running import Bench


@pytest.fixture
def bench(home: Path, tmp_path: Path) -> Iterator[Bench]:
    with Bench(home, tmp_path) as made:
        yield made
