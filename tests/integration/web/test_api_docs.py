"""The interactive documentation of both servers in a real browser, which reports whatever the strict policy forbids."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import Watched, opened_browser
from tests.integration.recommending import KEY, recommending
from tests.integration.serving import TOKEN, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as browser:
        yield browser


def test_behind_the_login_of_the_admin_server(browser: Browser) -> None:
    with serving() as served:
        assert httpx.get(f"{served.url}/docs", trust_env=False).status_code in (303, 401)
        page = browser.new_page(base_url=served.url)
        watched = Watched(page)
        page.goto("/docs")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/docs")
        assert try_it(page, "get", "/api/bench/experiments") == "200"
        assert watched.troubles == []


def test_a_service_asks_for_its_key(browser: Browser) -> None:
    with recommending() as served:
        page = browser.new_page(base_url=served.url)
        page.goto("/docs")
        page.get_by_label("Service key").fill("another")
        page.get_by_role("button", name="Show the API").click()
        expect(page.get_by_role("alert")).not_to_be_empty()
        expect(page.locator(".opblock")).to_have_count(0)
        watched = Watched(page)
        page.get_by_label("Service key").fill(KEY)
        page.get_by_role("button", name="Show the API").click()
        assert try_it(page, "get", "/shadows") == "200"
        assert watched.troubles == []


def try_it(page: Page, method: str, path: str) -> str:
    """Send the request of an operation without parameters; return the status that is shown."""
    operation = page.locator(f".opblock-{method}", has=page.locator(f'[data-path="{path}"]'))
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    return operation.locator(".live-responses-table .response-col_status").last.inner_text().strip()
