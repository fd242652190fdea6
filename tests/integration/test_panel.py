"""The whole path in a real browser: log in, run a real model, judge by keyboard, see the leaderboard change."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import Watched, opened_browser
from tests.integration.filling import filled
from tests.integration.serving import TOKEN, Served, serving

EXPERIMENT = "tip-bench-browser"
_MODEL_PATIENCE_MS = 180_000


@pytest.fixture
def served(weights: Path) -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def page(served: Served) -> Iterator[Page]:
    with opened_browser() as browser:
        page = browser.new_page(base_url=served.url, viewport={"width": 1280, "height": 900})
        watched = Watched(page)
        yield page
        assert watched.troubles == []


class Camera:
    """Takes pictures for the docs where `--screenshots FOLDER` says so."""

    def __init__(self, page: Page, folder: str | None) -> None:
        self._page = page
        self._folder = Path(folder) if folder else None

    def take(self, name: str, phone: bool = False, dark: bool = False) -> None:
        if self._folder:
            if dark:
                self._page.emulate_media(color_scheme="dark")
            if phone:
                self._page.set_viewport_size({"width": 375, "height": 812})
            self._page.wait_for_timeout(300)
            self._page.screenshot(path=self._folder / f"server-{name}.png")
            self._page.set_viewport_size({"width": 1280, "height": 900})
            self._page.emulate_media(color_scheme="light")


def test_from_the_login_to_the_leaderboard(page: Page, pytestconfig: pytest.Config) -> None:
    camera = Camera(page, pytestconfig.getoption("--screenshots"))
    log_in(page, camera)
    start_a_run(page, camera)
    watch_it_finish(page, camera)
    before = leaderboard(page)
    assert "No answer yet: nothing is judged." in before
    judge_all_by_keyboard(page, camera)
    after = leaderboard(page)
    assert "No answer yet" not in after
    assert "Next:" in after
    expect(page.get_by_role("table").first).to_be_in_viewport()
    camera.take("leaderboard")
    camera.take("leaderboard-phone", phone=True, dark=True)
    read_a_run(page, camera)
    log_out(page)


def log_in(page: Page, camera: Camera) -> None:
    page.goto("/")
    expect(page).to_have_url("/login")
    camera.take("login")
    page.get_by_label("Token").fill("a-wrong-token-that-is-long")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("not valid")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()
    expect(page.get_by_text("No experiments yet")).to_be_visible()


def start_a_run(page: Page, camera: Camera) -> None:
    page.get_by_role("button", name="Run Collection").first.click()
    model = page.get_by_role("checkbox", name="embedded/smollm2:135m")
    expect(model).to_be_visible(timeout=30_000)
    model.check()
    page.locator("input[name=prompts][value='v3-few-shot']").uncheck()
    page.locator("#field-n_tips").fill("many")
    expect(page.locator("#run-estimate")).to_contain_text("n_tips")
    page.locator("#field-n_tips").fill("5")
    page.locator("#field-n_scenarios").fill("2")
    page.locator("#field-experiment").fill(EXPERIMENT)
    expect(page.locator("#run-estimate")).to_contain_text("4 cells")
    camera.take("run-dialog")
    page.locator("#run-form summary", has_text="More").click()
    page.locator("#field-max_tokens").fill("96")  # of four answers, most can be used by then
    expect(page.locator("#run-estimate")).to_contain_text("4 cells")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/jobs/*")


def watch_it_finish(page: Page, camera: Camera) -> None:
    expect(page.locator("main")).to_contain_text("1 of 4", timeout=_MODEL_PATIENCE_MS)
    camera.take("job")
    expect(page.locator("main")).to_contain_text("finished", timeout=_MODEL_PATIENCE_MS)
    camera.take("job-finished")


def leaderboard(page: Page) -> str:
    page.goto("/experiments")
    page.get_by_role("link", name=EXPERIMENT).first.click()
    expect(page.locator("h1")).to_contain_text(EXPERIMENT)
    return page.locator("main").inner_text()


def judge_all_by_keyboard(page: Page, camera: Camera) -> None:
    """As a faithful judge: anchors as they should be scored, the same text always the same."""
    page.get_by_role("link", name=re.compile(r"Judge \d+ cell")).first.click()
    expect(page.get_by_text("you see how your scores compare with the rubric")).to_be_visible()
    for number in range(1, 10):
        page.get_by_role("button", name="Start the next batch").click()
        judge_batch(page, camera, first=number == 1)
        if not page.get_by_role("button", name="Start the next batch").is_visible():
            return
    pytest.fail("ten batches were not enough")


def judge_batch(page: Page, camera: Camera, first: bool) -> None:
    page.wait_for_url("**/judging/*")
    expect(page.locator("#item-heading")).to_contain_text("1 of")
    if first:
        camera.take("judging")
        camera.take("judging-phone", phone=True, dark=True)
    batch = page.url.rpartition("/")[2]
    file = page.context.request.get(f"/api/judging/batches/{batch}").json()
    assert EXPERIMENT not in json.dumps(file)
    for item in filled(file)["items"]:
        page.keyboard.type("".join(str(score) for score in item["scores"].values()))
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"All {len(file['items'])} items are scored")).to_be_visible()
    expect(page.locator("#saving")).to_have_text("saved")
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url("**/report")
    if first:
        camera.take("judging-report")
    assert "on hold" not in page.locator("main").inner_text().lower()


def read_a_run(page: Page, camera: Camera) -> None:
    page.locator("main a[href*='/experiments/runs']").first.click()
    page.locator("main table a").first.click()
    expect(page.locator("main")).to_contain_text("embedded/smollm2:135m")
    camera.take("run")
    expect(page.get_by_role("link", name="MLflow").last).to_be_visible()


def log_out(page: Page) -> None:
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url("/login")
    page.goto("/experiments")
    expect(page).to_have_url("/login?next=/experiments")
