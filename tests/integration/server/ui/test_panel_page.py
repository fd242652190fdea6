"""The panel's pages in a real browser: what only shows there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from playwright.sync_api import Browser, Page, expect

from tests.bench.compare.html.boards import grid
from tests.browser import Watched
from tests.server.ui.judging_server import Server
from tests.server.ui.made_panel import MadeBoards, MadeRunner, MadeTokens, a_job, app_of, parts_of
from tests.server.views.served_rows import candidate_of, cells, serve
from tipbench.server.mlflow_pages.pages import Notice
from tipbench.server.ui import urls
from tipbench.server.ui.entrance import render_notice


@contextmanager
def opened(browser: Browser, app: FastAPI, width: int = 1280) -> Iterator[Page]:
    server = Server(app)
    context = browser.new_context(base_url=server.url, viewport={"width": width, "height": 700})
    try:
        page = context.new_page()
        watched = Watched(page)
        yield page
        assert [one for one in watched.troubles if "status of 503" not in one] == []
    finally:
        context.close()
        server.stop()


def test_what_has_to_be_waited_for_loads_by_itself_wherever_in_it_the_address_leads(browser: Browser) -> None:
    app, asked = app_of(parts_of()), []

    @app.get("/mlflow/")
    def mlflow(request: Request) -> Response:
        asked.append(request.url.path)
        ready = len(asked) > 2
        return HTMLResponse("<p>a run") if ready else render_notice(request, Notice(503, "wait a little", 0))

    with opened(browser, app) as page:
        page.goto("/mlflow/#/experiments/3/runs/abc")
        expect(page.locator("body")).to_have_text("a run")
        assert page.url.endswith("/mlflow/#/experiments/3/runs/abc")


@pytest.mark.parametrize(("path", "button"), [("/jobs/j1", "Cancel …"), ("/judges", "Revoke …")])
def test_what_asks_whether_it_is_meant_can_be_read_on_a_phone(browser: Browser, path: str, button: str) -> None:
    parts = parts_of(runner=MadeRunner({"j1": a_job("j1", text="tip")}), tokens=MadeTokens("lena"))
    with opened(browser, app_of(parts), 375) as page:
        page.goto(path)
        page.get_by_text(button).click()
        box = page.locator(".confirm-box").bounding_box()
        assert box
        assert (box["x"] >= 0, box["x"] + box["width"] <= 375) == (True, True)


@pytest.mark.parametrize("width", [1280, 375])
def test_what_users_did_comes_by_itself_and_fits(browser: Browser, tmp_path: Path, width: int) -> None:
    made = cells(["a-model-with-a-name-that-goes-on-and-on:instruct-q4"])
    serve(tmp_path, ("u1", candidate_of(made[0]), 1.0), ("u2", candidate_of(made[1]), -0.5))
    parts = parts_of(boards=MadeBoards({"e": made}, served=tmp_path / "decisions"))
    with opened(browser, app_of(parts), width) as page:
        page.goto(urls.leaderboard("e"))
        expect(page.get_by_role("heading", name="What users did with them")).to_be_visible()
        expect(page.locator("#rewards tbody tr")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 375])
def test_texts_are_side_by_side_where_there_is_room_and_stacked_where_not(browser: Browser, width: int) -> None:
    long_name = "a-model-with-a-name-that-goes-on-and-on:instruct-q4"
    parts = parts_of(boards=MadeBoards({"e": grid([long_name, *"abcd"], ["v1", "v2"], 4)}))
    with opened(browser, app_of(parts), width) as page:
        page.goto(urls.leaderboard("e"))
        page.get_by_role("link", name="Show more").click()
        expect(page.locator(".scenario-texts")).to_have_count(4)
        expect(page.locator(".scenario-texts").nth(2).locator("summary").first).to_be_focused()
        page.get_by_text("Compare two variants").click()
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/experiments/texts?*")
        first, second = (page.locator(".texts td .text").nth(n).bounding_box() for n in (0, 1))
        assert first
        assert second
        assert (first["y"] == second["y"], first["x"] == second["x"]) == (width == 1280, width == 375)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_run_that_is_refused_is_where_the_focus_is(browser: Browser) -> None:
    with opened(browser, app_of(parts_of())) as page:
        page.goto("/experiments")
        page.get_by_role("button", name="Run Collection").click()
        page.locator("#field-n_tips").fill("many")
        page.locator("#run-start").press("Enter")
        expect(page.locator("#run-problems .alert")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#field-n_tips")).to_be_focused()
