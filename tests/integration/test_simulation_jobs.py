"""A real gate over the API: watched to its verdict while its server is killed; and one that is cancelled."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import expect

from tests.browser import opened_browser
from tests.integration.serving import TOKEN, Served, serving, until
from tests.integration.test_panel import Camera
from tests.integration.touring import Tourist, touring
from tipbench.server.ui import urls

ALL = "/api/recommend/simulations"
SMALL = {"seeds": 10, "steps": 20}
USUAL: dict[str, int] = {}  # enough to pass, and minutes: for pictures


def started(client: httpx.Client, **asked: Any) -> str:
    answer = client.post(ALL, json=asked)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"{ALL}/{found['id']}"
    return str(found["id"])


def seen(client: httpx.Client, simulation: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{ALL}/{simulation}").raise_for_status().json()
    return found


def ended(client: httpx.Client, simulation: str) -> dict[str, Any]:
    until(lambda: seen(client, simulation)["ended_ms"], patience_s=200)
    return seen(client, simulation)


def test_a_gate_goes_on_without_its_server_and_comes_to_its_verdict(home: Path, pytestconfig: pytest.Config) -> None:
    pictures = pytestconfig.getoption("--screenshots")
    first = Served()
    with first.client() as client:
        gate = started(client, kind="gate", candidate="ucb/v3", **(USUAL if pictures else SMALL))
        waits = started(client, kind="run", policies=["linucb"], seeds=1, steps=5)
        until(lambda: seen(client, gate)["progress"]["phase"] == "simulate")
        assert client.get(f"{ALL}/{gate}/outcome").status_code == 404
    first.kill()
    with serving() as second, second.client() as client:
        finished = ended(client, gate)
        passed = bool(pictures)
        assert (finished["state"], finished["exit_status"], finished["passed"]) == (
            "finished",
            int(not passed),
            passed,
        ), finished["log"]
        assert finished["progress"]["done"] == finished["progress"]["cells"] == (300 if pictures else 100)
        outcome = client.get(f"{ALL}/{gate}/outcome").json()
        assert outcome["gate"]["passed"] is passed
        record = client.get(f"/api/recommend/gates/{finished['gate']}").json()
        assert record["verdict"] == outcome["gate"]
        assert [one["id"] for one in client.get("/api/recommend/gates").json()["gates"]] == [finished["gate"]]
        assert ended(client, waits)["state"] == "finished"
        assert client.get("/api/recommend/promotions").json()["live"] == "egreedy"
        look_at_everything(second, gate, finished["gate"], pictures)


def look_at_everything(served: Served, simulation: str, gate: str, pictures: str | None) -> None:
    with opened_browser() as browser, touring(browser, served, TOKEN, 375) as tourist:
        shown = tourist.follow_all_links(urls.RECOMMENDER)
        assert {
            urls.simulation(simulation),
            urls.gate(gate),
            urls.REPLAYS,
            urls.SHADOWS,
            urls.PROMOTIONS,
        } <= shown.keys()
        assert "Does the gate itself work?" in shown[urls.gate(gate)]
        take_pictures(tourist, gate, pictures)
        page = tourist.page
        page.goto(urls.SIMULATIONS)
        page.get_by_text("Run a simulation").click()
        page.locator("#run-seeds").fill("many")
        page.get_by_role("button", name="Start the simulation").click()
        expect(page.locator("#simulation-problems .alert")).to_be_focused()
        page.locator("#run-seeds").fill("1")
        page.locator("#run-steps").fill("5")
        page.get_by_role("button", name="Start the simulation").click()
        expect(page.locator("#curves")).to_be_visible(timeout=60_000)


def take_pictures(tourist: Tourist, gate: str, folder: str | None) -> None:
    camera = Camera(tourist.page, folder)
    tourist.page.emulate_media(reduced_motion="reduce")  # or it is still on its way to where the address leads
    tourist.page.set_viewport_size({"width": 1280, "height": 900})
    tourist.page.goto(urls.gate(gate))
    camera.take("gate")
    tourist.page.goto(f"{urls.gate(gate)}#curves")
    camera.take("personas")
    camera.take("gate-phone", phone=True, dark=True)
    tourist.page.set_viewport_size({"width": 375, "height": 900})


def test_one_that_is_cancelled_ends_with_all_its_processes(home: Path) -> None:
    with serving() as served, served.client() as client:
        simulation = started(client, kind="run", policies=["egreedy"], seeds=900, steps=10_000)
        until(lambda: seen(client, simulation)["progress"]["cells"])
        folder = str(home / "server" / "simulations" / simulation)
        of_it = [one for one in psutil.process_iter(["cmdline"]) if folder in " ".join(one.info["cmdline"] or ())]
        assert of_it
        below = [child for one in of_it for child in one.children(recursive=True)]
        assert client.post(f"{ALL}/{simulation}/cancel").json()["cancelling"] is True
        assert ended(client, simulation)["state"] == "cancelled"
        _, left = psutil.wait_procs([*of_it, *below], timeout=10)
        assert left == []


def test_one_that_is_killed_is_told_so(home: Path) -> None:
    with serving() as served, served.client() as client:
        simulation = started(client, kind="run", policies=["egreedy"], seeds=900, steps=10_000)
        until(lambda: seen(client, simulation)["progress"]["cells"])
        folder = f"{home}/server/simulations/{simulation}"
        for one in psutil.process_iter(["cmdline"]):
            if any(word.startswith(folder) for word in one.info["cmdline"] or ()):
                os.kill(one.pid, signal.SIGKILL)
        found = ended(client, simulation)
        assert (found["state"], found["gate"]) == ("failed", None)
        assert "start it again" in found["message"]
