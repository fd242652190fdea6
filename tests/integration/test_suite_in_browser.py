"""A suite of another kind in a browser only: registered, run, judged by two, compared, and its anchors accepted."""

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.axe import serious_faults
from tests.browser import Watched, opened_browser
from tests.integration.command import tipbench
from tests.integration.serving import TOKEN, Served, serving

COMMITS = Path(__file__).parent / "suites" / "commits"
EXPERIMENT = "commits-bench-browser"
MORE = """{"id": "retry", "kind": "fix", "diff": "+for attempt in range(3):", "why": "uploads failed on flaky lines",
 "checks": {"names_it": {"check": "contains", "texts": ["retry"]}}}
{"id": "licence", "kind": "chore", "diff": "+LICENSE", "why": "lawyers asked"}
""".replace("\n ", " ")
_PATIENCE_MS = 60_000


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as served:
        yield served


def opened(browser: Browser, served: Served, token: str) -> tuple[Page, Watched]:
    page = browser.new_context(base_url=served.url, viewport={"width": 1280, "height": 900}).new_page()
    watched = Watched(page)
    page.goto("/login")
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    return page, watched


def test_commit_messages_from_a_folder_to_accepted_anchors(served: Served, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(COMMITS, tmp_path / "commits"))
    (tmp_path / "more.jsonl").write_text(MORE, encoding="utf-8")
    assert "2 scenarios taken" in tipbench("suite", "import", str(folder), str(tmp_path / "more.jsonl")).out
    with opened_browser() as browser:
        admin, watched = opened(browser, served, TOKEN)
        register(admin, folder)
        run(admin)
        for name in ("lena", "tom"):
            judge, watched_judge = opened(browser, served, invite(admin, name))
            ask(admin, name)
            judge_a_batch(judge)
            refused = judge.goto("/suites/suite?suite=commits")
            assert (refused and refused.status) == 403, "anchors are no judge's business"
            assert watched_judge.troubles == []
        compare(admin)
        accept_an_anchor(admin)
        assert watched.troubles == []
    assert (folder / "anchors.yaml").read_text().count('by: ["lena", "tom"]') == 2


def register(page: Page, folder: Path) -> None:
    page.get_by_role("link", name="Suites").click()
    page.get_by_label("Folder on the server’s machine").fill(str(folder / "prompts"))
    page.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_text("suite.yaml: the file is missing")).to_be_visible()
    page.get_by_label("Folder on the server’s machine").fill(str(folder))
    page.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_role("heading", name="commits", exact=True)).to_be_visible()
    expect(page.get_by_text("nobody checks its judges").first).to_be_visible()


def run(page: Page) -> None:
    """Starts with the built-in suite in the dialog, and chooses the other one there."""
    page.goto("/experiments")
    page.get_by_role("button", name="Run Collection").first.click()
    page.locator("#field-models").fill("scripted/a")
    page.locator("#field-temperature").fill("0.3")
    expect(page.locator("#run-estimate")).to_contain_text("24 cells", timeout=30_000)
    page.locator("#field-suite").select_option("commits")
    expect(page.get_by_role("checkbox", name="v2-imperative")).to_be_checked()
    expect(page.locator("#run-estimate")).to_contain_text("16 cells")
    expect(page.locator("#field-experiment")).to_have_value(re.compile(r"commits-bench-\d{4}"))
    expect(page.locator("#field-temperature")).to_have_value("0.3")
    page.locator("#field-experiment").fill(EXPERIMENT)
    page.locator("#field-n_tips").fill("1")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("main")).to_contain_text("finished", timeout=_PATIENCE_MS)


def invite(page: Page, name: str) -> str:
    page.goto("/judges")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Invite").click()
    return page.locator("#judges-said pre").first.inner_text().split()[-1]


def ask(page: Page, name: str) -> None:
    """Gives this judge all of the experiment, also what others have scored."""
    page.goto(f"/experiments/leaderboard?experiment={EXPERIMENT}")
    page.get_by_text("Ask a judge").click()
    page.get_by_label("Who should judge this experiment").select_option(name)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text(f"wait for {name} now")).to_be_visible()


def judge_a_batch(page: Page) -> None:
    page.goto("/judging")
    page.locator("a[href*='/judging/']").first.click()
    expect(page.locator("#item-heading")).to_contain_text("1 of")
    file = page.context.request.get(f"/api/judging/batches/{page.url.rpartition('/')[2]}").json()
    for item in file["items"]:
        drawn = random.Random(item["scenario"] + item["candidate"])
        page.keyboard.type("".join(str(drawn.randint(1, 3)) for _ in file["scales"]))
        page.keyboard.press("Enter")
    expect(page.locator("#saving")).to_have_text("saved")
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url("**/report")


def compare(page: Page) -> None:
    page.goto("/experiments")
    page.get_by_role("link", name=EXPERIMENT).first.click()
    expect(page.get_by_role("table").first).to_contain_text("v2-imperative")
    expect(page.locator("main")).not_to_contain_text("No answer yet")
    expect(page.locator("#figures")).to_contain_text("full stop")


def accept_an_anchor(page: Page) -> None:
    page.goto("/suites/suite?suite=commits")
    page.get_by_role("button", name="Propose …").click()
    expect(page.get_by_text("Two judges or more scored 16 candidates")).to_be_visible()
    page.set_viewport_size({"width": 375, "height": 812})
    assert serious_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for number in ("1 anchor.", "2 anchors."):
        page.get_by_role("button", name="Accept").first.click()
        expect(page.locator("#anchors-now")).to_have_text(f"The suite has {number}")
    page.goto("/suites/suite?suite=commits")
    expect(page.get_by_role("heading", name="2 anchors")).to_be_visible()
