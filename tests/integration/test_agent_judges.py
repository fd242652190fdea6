"""The lines of docs/judging.md about coding agents, run as they stand, with a stand-in in the agent's place."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import Watched, opened_browser
from tests.integration.command import tipbench
from tests.integration.serving import TOKEN, ended_job, serving
from tests.stand_in_agent import path_with_claude

DOCS = Path(__file__).parents[2] / "docs" / "judging.md"
EXPERIMENT = "tip-bench-2026-04-27"


@pytest.fixture(autouse=True)
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A program of that name, which is the stand-in."""
    monkeypatch.setenv("PATH", path_with_claude(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def lines() -> list[str]:
    """The commands, with scripted models in place of those that would need a server."""
    section = DOCS.read_text(encoding="utf-8").split("## A coding agent as the judge")[1].split("\n## ")[0]
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    models = re.compile(r"--models \S+")
    return [models.sub("--models scripted/a,scripted/b", line) for block in blocks for line in block.splitlines()]


def run(line: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["bash", "-ec", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done


def test_from_collecting_to_the_leaderboard_with_an_agent(lines: list[str]) -> None:
    *by_folder, unattended, _ = lines
    assert [line.split()[1] for line in by_folder if line.startswith("tipbench")] == [
        "collect", "judge", "judge", "compare"
    ]  # fmt: skip
    for line in by_folder[:-1]:
        run(line)
    answer = run(by_folder[-1]).stdout
    assert not answer.startswith("No answer yet")
    board = json.loads(tipbench("compare", "--experiment", EXPERIMENT, "--format", "json").out)
    assert board["judges"] == ["claude-code-2.1"]
    assert board["cells"]["judged"] == 48
    again = subprocess.run(["bash", "-ec", unattended], capture_output=True, text=True, check=False)
    assert "nothing in experiment" in again.stderr, "the same agent has judged everything"
    assert unattended.startswith("TIPBENCH_JUDGE_AGENT=claude-code ")


def test_unattended_in_one_step(lines: list[str]) -> None:
    assert run(lines[-1]).stdout.startswith("A batch by 'claude-code-2.1' would count")
    run(lines[0])
    done = run(lines[-2])
    assert "Scores of 240 candidates by 'claude-code-2.1' were written to 48 cells" in done.stdout
    assert "264 of 264 items scored, 0.14 USD so far" in done.stderr


FAITHFUL = """
import json, sys
sys.path.insert(0, {root!r})
from tests.integration.filling import filled
json.dump(filled(json.load(sys.stdin)), sys.stdout)
"""


def test_an_experiment_is_judged_by_a_click_and_the_answer_changes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an agent, and by a command that is configured in judges.toml."""
    (tmp_path / "judge.py").write_text(FAITHFUL.format(root=str(Path(__file__).parents[2])))
    command = json.dumps(f"{sys.executable} {tmp_path / 'judge.py'}")
    (home / "judges.toml").write_text(f'[house-rules]\nrun = "command"\ncommand = {command}\n')
    collect = ("collect", "--models", "scripted/a,scripted/b", "--prompts", "v1", "--n-tips", "2")
    assert tipbench(*collect, "--experiment", EXPERIMENT).status == 0
    monkeypatch.setenv("TIPBENCH_JUDGE_AGENT", "claude-code")
    with serving() as served, opened_browser() as browser:
        with served.client() as client:
            wrong = client.post(f"/api/bench/judge/{EXPERIMENT}", json={"judge": "webhook"})
            assert (wrong.status_code, "needs TIPBENCH_JUDGE_WEBHOOK" in wrong.text) == (422, True)
            assert client.post("/api/bench/judge/nothing", json={"judge": "agent"}).status_code == 404
        page = browser.new_page(base_url=served.url, viewport={"width": 1280, "height": 900})
        watched = Watched(page)
        page.goto("/")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.locator("#experiments-table").get_by_role("link", name=EXPERIMENT).click()
        expect(page.locator(".lead")).to_contain_text("No answer yet: nothing is judged.")
        run_judge(page, "agent")
        expect(page.locator("#job-live")).to_contain_text("32 candidates scored by 'claude-code-2.1' for 0.03 USD")
        expect(page.locator("#job-live")).to_contain_text("56 of 56 items scored.")
        assert tipbench("judge", "--run", "agent", "--calibrate", "--suite", "tip").status == 0
        page.get_by_role("link", name="See the leaderboard").click()
        expect(page.locator(".lead")).not_to_contain_text("No answer yet")
        page.get_by_text("Can the judges be trusted?").click()
        expect(page.locator("#judges .batch")).to_contain_text("judging took 0.03 USD")
        expect(page.locator("#judges .batch")).to_contain_text("The judge was calibrated on")
        run_judge(page, "house-rules")
        expect(page.locator("#job-live")).to_contain_text("32 candidates scored by 'house-rules'")
        page.get_by_role("link", name="See the leaderboard").click()
        page.get_by_text("Can the judges be trusted?").click()
        expect(page.locator("#judges")).to_contain_text("2 batches of 2 judges")
        assert watched.troubles == []
        with served.client() as client:
            again = client.post(f"/api/bench/judge/{EXPERIMENT}", json={"judge": "agent"}).json()
            ended = ended_job(client, again["id"])
            assert (ended["state"], "nothing in experiment" in ended["message"]) == ("finished", True)


def run_judge(page: Page, judge: str) -> None:
    """Start a judge from an experiment's page, and wait until its job has finished."""
    page.get_by_text("Run a judge …").click()
    page.get_by_label("Which judge should score").select_option(judge)
    page.get_by_role("button", name="Run it").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("#job-live")).to_contain_text("finished", timeout=60_000)
