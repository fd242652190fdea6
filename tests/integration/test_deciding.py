"""A decision from start to stop: in a browser, and over the API with several judges."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import Watched, opened_browser
from tests.integration.serving import TOKEN, Served, ended_job, serving, until
from tipbench.bench.suites.load import load_suite

EXPERIMENT = "tip-pool-browser"
LEVELS = {"good": 5, "fair": 4, "poor": 1}
ANCHORS = {one.candidate: dict(one.scores) for one in load_suite("tip-pool").anchors}


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def models(tmp_path: Path) -> str:
    for name, level in LEVELS.items():
        answer = json.dumps([f"Take the next step of {name}, at level {level}"])
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"parameters": 1_000_000, "rules": [{"answer": answer}]}))
    return ",".join(f"scripted/{tmp_path / name}.yaml" for name in LEVELS)


def scored(file: dict[str, Any]) -> dict[str, Any]:
    """As a faithful judge with known preferences: anchors as agreed on, other texts by the level that they name."""
    for item in file["items"]:
        drawn = random.Random(item["scenario"] + item["candidate"])
        level = int(item["candidate"].rpartition(" ")[2]) if item["candidate"] not in ANCHORS else 0
        item["scores"] = ANCHORS.get(item["candidate"]) or {
            criterion: min(5, max(1, level - (drawn.random() < 0.2))) for criterion in item["scores"]
        }
    return file


def test_a_decision_in_the_browser_from_start_to_stop(served: Served, models: str, pytestconfig: pytest.Config) -> None:
    with opened_browser() as browser:
        page = browser.new_page(base_url=served.url, viewport={"width": 1280, "height": 900})
        watched = Watched(page)
        start(page, models)
        for number in range(1, 20):
            judge_next_batch(page)
            page.goto(f"/experiments/decision?experiment={EXPERIMENT}")
            if number == 1:
                expect(page.locator("#decision-live")).to_contain_text("Undecided: all 3 rows may be the best")
                take(page, pytestconfig, "decision")
            if page.get_by_text("is expected to lose").first.inner_text().startswith("Take "):
                break
        expect(page.locator(".says")).to_contain_text("good.yaml × v1")
        expect(page.get_by_role("button", name="Judge the next batch")).to_have_count(0)
        page.goto("/experiments")
        page.locator("#experiments-table").get_by_role("link", name=EXPERIMENT).click()
        expect(page.locator(".says")).to_contain_text("Take ")
        assert watched.troubles == []


def start(page: Page, models: str) -> None:
    page.goto("/")
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Decide").click()
    expect(page.get_by_role("heading", name="Decide which model")).to_be_visible()
    for box in page.locator("input[name=models]:checked").all():
        box.uncheck()
    page.locator("#field-models").fill(models)
    for prompt in ("v2-mentor", "v3-few-shot"):
        page.locator(f"input[name=prompts][value='{prompt}']").uncheck()
    page.locator("#field-experiment").fill(EXPERIMENT)
    page.locator("#field-good_enough").fill("little")
    page.get_by_role("button", name="Start the decision").click()
    expect(page.get_by_role("alert")).to_contain_text("good_enough: must be a number of points (given: 'little')")
    page.locator("#field-good_enough").fill("0.15")
    page.get_by_role("button", name="Start the decision").click()
    page.wait_for_url("**/experiments/decision?**")
    expect(page.locator(".says")).to_contain_text("Nothing is judged yet: 3 rows are in.")


def judge_next_batch(page: Page) -> None:
    page.get_by_role("button", name="Judge the next batch").click(timeout=60_000)
    page.wait_for_url("**/judging/*")
    batch = page.url.rpartition("/")[2]
    file = page.context.request.get(f"/api/judging/batches/{batch}").json()
    expect(page.locator("#item-heading")).to_contain_text("1 of")
    for item in scored(file)["items"]:
        page.keyboard.type("".join(str(score) for score in item["scores"].values()))
        page.keyboard.press("Enter")
    expect(page.locator("#saving")).to_have_text("saved")
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url("**/report")
    assert "on hold" not in page.locator("main").inner_text().lower()


def take(page: Page, config: pytest.Config, name: str) -> None:
    folder = config.getoption("--screenshots")
    if folder:
        page.wait_for_timeout(300)
        page.screenshot(path=Path(folder) / f"server-{name}.png", full_page=True)
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 375, "height": 812})
        page.screenshot(path=Path(folder) / f"server-{name}-phone.png", full_page=True)
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})


def test_over_the_api_two_judges_decide_and_an_admin_stops_it(served: Served, models: str) -> None:
    with served.client() as admin:
        asked = {"models": models, "prompts": "v1", "n_tips": 1, "experiment": "tip-pool-api"}
        for wrong, problem in (
            ({"claim": "all"}, "claim: should be 'pool' or 'new'"),
            ({"good_enough": -1}, "good_enough: should be at least 0"),
            ({"budget": 0}, "budget: should be at least 1"),
            ({"promts": "v1"}, "promts: unknown key; did you mean prompts?"),
            ({"models": models.partition(",")[0]}, "a decision is between rows"),
        ):
            refused = admin.post("/api/bench/decisions", json={**asked, **wrong})
            assert refused.status_code == 422, refused.text
            assert problem in refused.text
        assert admin.get("/api/bench/experiments").json() == {"experiments": []}
        started = admin.post("/api/bench/decisions", json={**asked, "good_enough": 0.0, "budget": 90})
        assert started.status_code == 202, started.text
        assert ended_job(admin, started.json()["job"])["state"] == "finished"
        tokens = {
            name: admin.post("/api/judges", json={"name": name}).raise_for_status().json()["token"]
            for name in ("ann", "bob")
        }
        given: dict[str, dict[str, Any]] = {}
        for name, token in tokens.items():
            with served.client(token) as judge:
                assert judge.get("/api/bench/decisions/tip-pool-api").status_code == 403
                batch = judge.post("/api/judging/next").json()["batch"]["batch"]
                given[name] = judge.get(f"/api/judging/batches/{batch}").json()
        scenarios = [{one["scenario"] for one in file["items"]} for file in given.values()]
        anchored = {one.scenario for one in load_suite("tip-pool").anchors}
        assert not (scenarios[0] & scenarios[1]) - anchored, "no item goes to two judges"
        for name in ("bob", "ann"):
            with served.client(tokens[name]) as judge:
                done = judge.post(f"/api/judging/batches/{given[name]['batch']}/scores", json=scored(given[name]))
                assert done.json()["counted"], done.text
            found = admin.get("/api/bench/decisions/tip-pool-api").json()
            assert found["items"] == (0 if name == "bob" else 8), "items count in their stored order"
        until(lambda: ended_job(admin, admin.get("/api/bench/decisions/tip-pool-api").json()["job"]))
        stopped = admin.post("/api/bench/decisions/stop/tip-pool-api").json()
        assert stopped["stopped"] == "an admin stopped it"
        assert stopped["leader"].endswith("good.yaml × v1")
        with served.client(tokens["ann"]) as judge:
            assert judge.post("/api/judging/next").json() == {"batch": None}
        went_on = admin.post("/api/bench/decisions/continue/tip-pool-api", json={"budget": 400})
        assert (went_on.status_code, went_on.json()["stopped"], went_on.json()["budget"]) == (202, "", 400)
