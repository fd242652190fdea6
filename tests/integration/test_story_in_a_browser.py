"""The story in a browser: a bench's tips are served, a prior is fitted to that, passes its gate, and goes live."""

import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import Watched, opened_browser
from tests.integration.command import tipbench
from tests.integration.serving import TOKEN, Served, serving
from tests.integration.test_whole_story import done, winners_tips
from tests.recommender.served_events import Clock, Serving
from tests.server.views.made_recommender import a_gate
from tipbench.core.settings import Settings
from tipbench.recommender.records import Candidate
from tipbench.recommender.store.moving import open_store
from tipbench.server.ui import urls

EXPERIMENT = "tip-bench-story"
_GATE_PATIENCE_MS = 60_000


@pytest.fixture
def tips(tmp_path: Path) -> list[Candidate]:
    return [Candidate.model_validate(one) for one in winners_tips(tmp_path)]


@pytest.fixture
def served(tips: list[Candidate], tmp_path: Path) -> Iterator[Served]:
    assert tips
    with serving("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}") as served:
        yield served


@pytest.fixture
def page(served: Served) -> Iterator[Page]:
    with opened_browser() as browser:
        page = browser.new_page(base_url=served.url, viewport={"width": 1280, "height": 900})
        watched = Watched(page)
        page.goto("/login")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        yield page
        assert watched.troubles == []


def test_from_the_leaderboard_to_a_promoted_prior(page: Page, tips: list[Candidate], home: Path) -> None:
    page.goto(urls.leaderboard(EXPERIMENT))
    expect(page.get_by_text("scripted/great.yaml").first).to_be_visible()
    page.goto(urls.texts(EXPERIMENT))
    expect(page.get_by_text("Call Ms Roth before 19:00.").first).to_be_visible()
    assert all((tip.judged or 0) > 0.8 for tip in tips), "the judge's composite goes along"

    serve_users(home, tips)
    page.goto(urls.leaderboard(EXPERIMENT))
    expect(page.locator("#rewards")).to_contain_text("100")

    candidate = fit_a_prior(page)
    run_its_gate(page, candidate)
    go_live(page, candidate, home)


def serve_users(home: Path, tips: list[Candidate]) -> None:
    serving_users = Serving(home / "recommender", Clock())
    for number in range(100):
        serving_users.serve(f"u{number}", "e1", tips)
        serving_users.reward(f"u{number}", "e1", float(number % 2))
    serving_users.recommender.close()


def fit_a_prior(page: Page) -> str:
    """By the command that the page shows; the page then has it. Its candidate."""
    page.goto(urls.RECOMMENDER)
    page.get_by_role("link", name="Priors").click()
    expect(page.get_by_text("No priors yet.")).to_be_visible()
    words = shlex.split(page.locator("#fit").inner_text())
    fitted = tipbench(*words[1:])
    assert fitted.status == 0, fitted.err
    page.reload()
    row = page.get_by_role("row").nth(1)
    expect(row).to_contain_text("100")
    return f"ucb/v3@{row.get_by_role('rowheader').inner_text()}"


def run_its_gate(page: Page, candidate: str) -> None:
    """A small one, started by the form: too small to pass, and its verdict says why in one sentence."""
    page.get_by_role("link", name="Simulations").click()
    page.get_by_text("Run a gate").click()
    form = page.locator("form", has=page.get_by_role("button", name="Run the gate"))
    form.get_by_label("candidate").select_option(candidate)
    form.get_by_label("seeds").first.fill("10")
    form.get_by_label("steps").fill("4")
    form.get_by_role("button", name="Run the gate").click()
    expect(page).to_have_url(re.compile(urls.SIMULATIONS + "/."))
    expect(page.get_by_text("may not go live, because").first).to_be_visible(timeout=_GATE_PATIENCE_MS)
    page.goto(urls.GATES)
    page.get_by_role("link", name=f"{candidate} against egreedy").click()
    expect(page.get_by_role("heading", name="Scorecard")).to_be_visible()
    for control in ("permuted prior", "turned prior", "shuffled tips", "no prior", "prior as served"):
        expect(page.get_by_role("rowheader", name=f"ucb/v3, {control}", exact=True).first).to_be_visible()


def go_live(page: Page, candidate: str, home: Path) -> None:
    """A gate of the usual size takes minutes, so the record of one stands in for it; its page has the command."""
    with closing(open_store(Settings())) as store:
        gate = a_gate(home, candidate=candidate, read_prior=store.priors.read)
    page.goto(urls.gate(gate))
    expect(page.get_by_text("To make it live, run this on this machine:")).to_be_visible()
    words = shlex.split(page.locator("#promote").inner_text())
    done(*words[1:], "--yes", cwd=home)
    page.goto(urls.PROMOTIONS)
    expect(page.get_by_text(f"{candidate} is live.")).to_be_visible()
    page.get_by_role("link", name="Priors").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("live")
