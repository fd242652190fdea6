"""The whole story: bench, serve the winner's tips, fit a prior to that, hold its gate, promote it, roll it back.

What is looked at or started in the panel happens in a browser, by the commands that its pages show.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.sync_api import Page, expect

from tests.browser import Watched, opened_browser
from tests.integration.command import tipbench
from tests.integration.filling import filled
from tests.integration.recommending import recommending
from tests.integration.serving import TOKEN, serving
from tests.recommender.service.asking import reward
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.server.ui import urls

EXPERIMENT = "tip-bench-story"
STORE = ("--experiment", EXPERIMENT, "--mlflow-url", "sqlite:///m.db")
ANSWERS = {"great": "Call Ms Roth before 19:00.", "poor": "Drink water."}
WORTH = {"Call": 5, "Drink": 1}
USERS = 100  # as many as a prior takes
_GATE_PATIENCE_MS = 60_000


def done(*words: str, cwd: Path) -> str:
    finished = tipbench(*words, cwd=cwd)
    assert finished.status == 0, finished.err
    return finished.out


def a_judge_who_reads(path: Path) -> None:
    """The anchors as they should be, and the models' tips by how they begin."""
    file = filled(json.loads(path.read_text(encoding="utf-8")))
    for item in file["items"]:
        worth = next((worth for start, worth in WORTH.items() if item["candidate"].startswith(start)), None)
        item["scores"] = dict.fromkeys(item["scores"], worth) if worth else item["scores"]
    path.write_text(json.dumps(file), encoding="utf-8")


@pytest.fixture
def tips(tmp_path: Path) -> list[dict[str, Any]]:
    """From nothing to the candidates that the leaderboard's best row wrote."""
    for name, answer in ANSWERS.items():
        (tmp_path / f"{name}.yaml").write_text(f"parameters: 1000000000\nrules:\n  - answer: '[\"{answer}\"]'\n")
    done("collect", "--models", "scripted/great.yaml,scripted/poor.yaml", "--prompts", "v1", *STORE, cwd=tmp_path)
    done("judge", *STORE, "--export", "judge.json", cwd=tmp_path)
    a_judge_who_reads(tmp_path / "judge.json")
    done("judge", *STORE, "--apply", "judge.json", cwd=tmp_path)
    (first, *_) = json.loads(done("compare", *STORE, "--format", "json", cwd=tmp_path))["standings"]
    assert first["model"] == "scripted/great.yaml"
    return [one["candidate"] for one in json.loads(done("recommend", "tips", *STORE, cwd=tmp_path))]


@pytest.fixture
def page(tips: list[dict[str, Any]], tmp_path: Path) -> Iterator[Page]:
    assert tips
    store = ("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")
    with serving(*store) as served, opened_browser() as browser:
        page = browser.new_page(base_url=served.url, viewport={"width": 1280, "height": 900})
        watched = Watched(page)
        page.goto("/login")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        yield page
        assert watched.troubles == []


@pytest.fixture
def world(tmp_path: Path) -> str:
    """One of the built-in personas: a gate of the usual size in half a minute."""
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump(built_in_world().only(["specialist"]).model_dump(mode="json")), encoding="utf-8")
    return str(path)


def test_from_the_first_text_to_a_promoted_prior_and_back(
    page: Page, tips: list[dict[str, Any]], world: str, tmp_path: Path, home: Path
) -> None:
    see_the_tips(page)
    assert all(tip["judged"] > 0.8 for tip in tips), "the judge's composite goes along"
    with recommending() as service, service.client() as client:
        for number in range(USERS):
            assert shown(client, tips, "e1", f"u{number}")["policy"] == "egreedy"
            client.post("/reward", json=reward("e1", float(number % 2), f"u{number}")).raise_for_status()
        shown(client, tips, "e2")
        see_the_rewards(page, tmp_path)

        candidate = fit_a_prior(page)
        refused = tipbench("recommend", "promote", candidate, "--world", world, "--yes", cwd=tmp_path)
        assert refused.status == 2
        assert f"no gate has been run for {candidate} yet" in refused.err
        start_a_small_gate(page, candidate)
        asked = ("sim", "gate", "--candidate", candidate, "--world", world, "--format", "json")
        gate = json.loads(done(*asked, cwd=tmp_path))
        assert gate["gate"]["passed"]
        go_live(page, candidate, world, tmp_path)

        assert client.get("/health").json()["live"] == candidate
        answer = shown(client, tips, "e3")
        assert f"{answer['policy']}@{answer['prior']}" == candidate
        late = client.post("/reward", json=reward("e2", 1.0, "u1")).raise_for_status().json()
        assert (late["policy"], late["n"]) == ("egreedy", 2)  # whoever served it learns from it

        done("recommend", "rollback", "--yes", cwd=tmp_path)
        assert shown(client, tips, "e4")["policy"] == "egreedy"
    history = json.loads(done("recommend", "promotions", "--format", "json", cwd=tmp_path))
    assert [(act["act"], act["from"], act["to"]) for act in history["acts"]] == [
        ("promote", "egreedy", candidate),
        ("rollback", candidate, "egreedy"),
    ]
    assert (home / "recommender" / "gates" / f"{history['acts'][0]['gate']}.json").exists()


def see_the_tips(page: Page) -> None:
    page.goto(urls.leaderboard(EXPERIMENT))
    expect(page.get_by_text("scripted/great.yaml").first).to_be_visible()
    page.goto(urls.texts(EXPERIMENT))
    expect(page.get_by_text("Call Ms Roth before 19:00.").first).to_be_visible()


def shown(client: httpx.Client, tips: list[dict[str, Any]], event: str, user: str = "u1") -> dict[str, Any]:
    context = {"hour": 9.5, "focus_category": tips[0]["category"]}
    asked = {"user_id": user, "event_id": event, "context": context, "candidates": tips}
    answer: dict[str, Any] = client.post("/score", json=asked).raise_for_status().json()
    return answer


def see_the_rewards(page: Page, folder: Path) -> None:
    (row,) = json.loads(done("recommend", "rewards", *STORE, "--format", "json", cwd=folder))["rows"]
    found = tuple(row[name] for name in ("model", "served", "rewarded", "mean_reward"))
    assert found == ("scripted/great.yaml", USERS + 1, USERS, 0.5)
    page.goto(urls.leaderboard(EXPERIMENT))
    expect(page.locator("#rewards")).to_contain_text(str(USERS))


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
    expect(row).to_contain_text(str(USERS))
    return f"ucb/v3@{row.get_by_role('rowheader').inner_text()}"


def start_a_small_gate(page: Page, candidate: str) -> None:
    """By the form, which has the candidate; without its prior it takes seconds. Too small to pass, it says so."""
    page.get_by_role("link", name="Simulations").click()
    page.get_by_text("Run a gate").click()
    form = page.locator("form", has=page.get_by_role("button", name="Run the gate"))
    form.get_by_label("candidate").select_option(candidate)
    form.get_by_label("candidate").select_option("ucb/v3")
    form.get_by_label("seeds").first.fill("10")
    form.get_by_label("steps").fill("4")
    form.get_by_role("button", name="Run the gate").click()
    expect(page).to_have_url(re.compile(urls.SIMULATIONS + "/."))
    expect(page.get_by_text("may not go live, because").first).to_be_visible(timeout=_GATE_PATIENCE_MS)


def go_live(page: Page, candidate: str, world: str, folder: Path) -> None:
    """By the command on the gate's page."""
    page.goto(urls.GATES)
    page.get_by_role("link", name=f"{candidate} against egreedy").click()
    expect(page.get_by_text("may go live: it earns").first).to_be_visible()
    expect(page.get_by_role("heading", name="Scorecard")).to_be_visible()
    for control in ("permuted prior", "turned prior", "shuffled tips", "no prior", "prior as served"):
        expect(page.get_by_role("rowheader", name=f"ucb/v3, {control}", exact=True).first).to_be_visible()
    expect(page.get_by_text("It was run in a world of your own")).to_be_visible()
    words = shlex.split(page.locator("#promote").inner_text().replace("FILE", world))
    done(*words[1:], "--yes", cwd=folder)
    page.goto(urls.PROMOTIONS)
    expect(page.get_by_text(f"{candidate} is live.")).to_be_visible()
    page.get_by_role("link", name="Priors").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("live")
