"""One browser for all tests of a file."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import opened_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened
