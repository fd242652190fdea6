"""Texts of a hostile model, end to end: nothing runs in a browser, and pages and terminals stay intact."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.axe import serious_faults
from tests.browser import opened_browser
from tests.integration import hostile_answers as hostile
from tests.integration.command import tipbench
from tests.integration.hostile_answers import EXPERIMENT
from tests.integration.hostile_judges import hand_in, next_batch, scored, scored_lowest, take_notes
from tests.integration.serving import TOKEN, Served, ended_job, start_run, until
from tests.integration.touring import touring
from tipbench.core.untrusted import printable
from tipbench.server.ui import urls

# Once with the strict policy and once without any, so that escaping is seen to hold by itself.
both_widths = pytest.mark.parametrize(
    ("width", "policy"), [(1280, True), (375, False)], ids=["wide", "phone-no-policy"]
)
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Collected(NamedTuple):
    """A job that was watched in a browser until it had ended."""

    job: dict[str, Any]
    page: str  # what its page then showed


class Bench(NamedTuple):
    """A server whose experiment is collected and judged."""

    served: Served
    client: httpx.Client
    job: dict[str, Any]
    judge: str  # the token of one whose batch is open
    batch: str


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store') / 'mlflow.db'}"


@pytest.fixture(scope="module")
def served(store: str, tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("home")
    (home / "cache").symlink_to(empty_databases)
    started = Served("--mlflow-url", store, TIPBENCH_HOME=str(home))
    try:
        with started.client() as client:
            client.get("/%1B%5B2J%C2%9B2J%E2%80%AE/owned")
        yield started
    finally:
        logged = started.end()
    assert "GET /\\u001b[2J\\u009b2J\\u202e/owned 400" in logged
    assert "Traceback" not in logged
    assert_harmless(logged)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def collected(served: Served, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """Without the policy: the page is changed again and again while the job goes, and a late script is one as well."""
    model = hostile.hostile_model(tmp_path_factory.mktemp("models"))
    run = {"models": model, "prompts": "v1,v2-mentor", "n_tips": hostile.TIPS, "experiment": EXPERIMENT}
    with served.client() as client, touring(browser, served, TOKEN, 1280, policy=False) as tourist:
        job = start_run(client, **run)["id"]
        tourist.visit(f"/jobs/{job}")
        expect(tourist.page.locator(".job-state")).to_contain_text("Finished", timeout=60_000)
        return Collected(ended_job(client, job), tourist.look().text)


@pytest.fixture(scope="module")
def bench(
    served: Served, collected: Collected, store: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    with served.client() as client:
        client.get("/mlflow/", headers={"Accept": "text/html"})  # MLflow's server starts meanwhile
        ada, bob = (client.post("/api/judges", json={"name": name}).json()["token"] for name in ("ada", "bob"))
        with served.client(ada) as judging:
            open_one = next_batch(judging)
            take_notes(judging, open_one)
        with served.client(bob) as judging:
            drifting = next_batch(judging)
            judge_every_text(store, tmp_path_factory.mktemp("judged") / "judge.json")
            assert hand_in(judging, drifting, scored_lowest)["quarantine"]
        accepted = client.post(f"/api/judging/batches/{drifting['batch']}/accept", json={"why": hostile.REASON})
        assert accepted.json()["counted"], accepted.text
        yield Bench(served, client, collected.job, ada, open_one["batch"])


def judge_every_text(store: str, file: Path) -> None:
    """By a person with a file; the page offers one of each cell."""
    where = ("--experiment", EXPERIMENT, "--mlflow-url", store)
    assert tipbench("judge", *where, "--export", str(file), "--sample", "99").status == 0
    file.write_text(json.dumps(scored(json.loads(file.read_text(encoding="utf-8")))), encoding="utf-8")
    done = tipbench("judge", *where, "--apply", str(file))
    assert done.status == 0, done.err


def assert_harmless(text: str) -> None:
    found = _OBEYED.search(text)
    assert not found, f"a terminal would obey {found[0]!r} in {text[max(0, found.start() - 80) : found.end() + 80]!r}"


def words(text: str) -> str:
    return " ".join(text.split())


def is_shown(text: str, page: str) -> bool:
    """Its beginning, as text."""
    return words(printable(text[:200])) in words(page)


@both_widths
def test_every_page_shows_hostile_texts_as_text(bench: Bench, browser: Browser, width: int, policy: bool) -> None:
    with touring(browser, bench.served, TOKEN, width, policy) as tourist:
        shown = tourist.follow_all_links("/")
        texts = tourist.visit(urls.texts(EXPERIMENT)).text
    assert_harmless("\n".join(shown.values()))
    paths = "\n".join(shown)
    for page in ("/experiments", "/jobs", f"/jobs/{bench.job['id']}", "/judging", "/judges", "/experiments/runs?"):
        assert page in paths
    runs = [text for path, text in shown.items() if path.startswith("/experiments/run?")]
    assert len(runs) == 16
    everything = "\n".join(runs)
    for text in (*hostile.TEXTS, *hostile.NOTES, hostile.RAW, hostile.FAILURE):
        assert is_shown(text, everything), text[:200]
    (board,) = [text for path, text in shown.items() if path.startswith("/experiments/leaderboard?")]
    for text in (EXPERIMENT, hostile.SCRIPT, hostile.LONG, hostile.IMAGE, hostile.ESCAPES, hostile.REASON, "noted: "):
        assert is_shown(text, board), text[:200]
    for text in (
        hostile.SCRIPT,
        hostile.LONG,
        hostile.IMAGE,
        hostile.ESCAPES,
        "noted: ",
        f"failed: {hostile.FAILURE}"[:100],
    ):
        assert is_shown(text, texts), text[:200]
    assert is_shown(hostile.FAILURE[:100], shown[f"/jobs/{bench.job['id']}"])


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (375, True)], ids=["wide-light", "phone-dark"])
def test_no_page_has_a_serious_fault(bench: Bench, browser: Browser, width: int, dark: bool) -> None:
    with touring(browser, bench.served, TOKEN, width, dark=dark) as tourist:
        found = tourist.faults_by_kind("/")
        for path in (urls.RECOMMENDER, urls.SIMULATIONS, f"/judging/{bench.batch}"):
            assert tourist.page.goto(path)
            found[path] = serious_faults(tourist.page)
    assert len(found) > 12
    assert {kind: faults for kind, faults in found.items() if faults} == {}


@both_widths
def test_a_judge_goes_through_hostile_texts(bench: Bench, browser: Browser, width: int, policy: bool) -> None:
    with touring(browser, bench.served, bench.judge, width, policy) as tourist:
        tourist.visit(f"/judging/{bench.batch}")
        with bench.served.client(bench.judge) as client:
            items = client.get(f"/api/judging/batches/{bench.batch}").json()["items"]
        for number, item in enumerate(items, 1):
            expect(tourist.page.locator("#item-heading")).to_have_text(f"Item {number} of {len(items)}")
            assert is_shown(item["candidate"], tourist.look().text), item["candidate"][:200]
            assert tourist.page.locator("#note").input_value() == item["note"].replace("\r", "\n")
            tourist.page.keyboard.press("Enter")
        expect(tourist.page.locator("#finish-heading")).to_contain_text("items are not scored yet")


def test_a_model_that_can_not_be_run_is_named_in_the_dialog(bench: Bench, browser: Browser) -> None:
    name = "<img src=x onerror=top.hacked='named'>.yaml"
    with touring(browser, bench.served, TOKEN, 375, policy=False) as tourist:
        tourist.visit("/experiments")
        tourist.page.get_by_role("button", name="Run Collection").first.click()
        tourist.page.locator("#field-models").fill(f"scripted/{name}")
        expect(tourist.page.locator("#run-estimate")).to_contain_text(name, timeout=20_000)
        tourist.page.get_by_role("button", name="Start the run").click()
        expect(tourist.page.locator("#run-problems")).to_contain_text(name, timeout=20_000)
        tourist.look()


def test_mlflows_pages_of_runs_run_nothing(bench: Bench, browser: Browser) -> None:
    until(lambda: bench.client.get("/mlflow/health").status_code == 200)

    def first(state: str) -> str:
        runs = bench.client.get(f"/api/bench/runs/{EXPERIMENT}", params={"state": state}).json()["runs"]
        return urls.run(EXPERIMENT, runs[0]["run_id"])

    with touring(browser, bench.served, TOKEN, 1280) as tourist:
        page = tourist.page
        for state, opens, shown in (("failed", (), "failure"), ("empty", ("Artifacts", "raw.txt"), "raw")):
            tourist.visit(first(state))
            page.get_by_role("link", name="Open in MLflow").click()
            for name in opens:
                page.get_by_text(name).first.click()
            page.get_by_text(f"top.hacked='{shown}'").first.wait_for()
            runs = "[onload], [onerror], [onfocus], [srcdoc], a[href^='javascript:'], img[src=x]"
            assert page.locator(runs).count() == 0
            assert "MLflow" in page.title()
            tourist.expect_no_trouble()


def test_a_terminal_obeys_nothing(bench: Bench, store: str, tmp_path: Path) -> None:
    where = ("--experiment", EXPERIMENT, "--mlflow-url", store)
    file, scores = tmp_path / "judge.json", tmp_path / "scores.csv"
    naming_the_model = [
        ("compare", *where, "--scores", str(scores)),
        *(("compare", *where, "--format", form) for form in ("html", "markdown", "csv", "json")),
        ("experiments", "show", EXPERIMENT, "--mlflow-url", store),
    ]
    others = [
        ("experiments", "list", "--mlflow-url", store),
        ("judge", *where, "--status"),
        ("judge", *where, "--export", str(file), "--judge", "cleo", "--sample", "99"),
    ]
    for command in naming_the_model + others:
        done = tipbench(*command)
        assert done.status == 0, done.err
        assert_harmless(done.out + done.err)
        assert "u001b" in done.out or command in others, "made visible, not merely lost where there is no terminal"
    for written in (file, scores):
        assert_harmless(written.read_text(encoding="utf-8"))
    texts = {item["candidate"] for item in json.loads(file.read_text(encoding="utf-8"))["items"]}
    assert texts >= set(hostile.TEXTS), "and nothing of them is lost"


def test_a_job_that_was_watched_shows_failures_as_text(served: Served, collected: Collected) -> None:
    job = collected.job
    assert (job["state"], job["progress"]["failed"], job["progress"]["empty"]) == ("finished", 2, 2), job["log"]
    assert is_shown(hostile.FAILURE[:100], collected.page)
    with served.client() as client:
        log = client.get(f"/api/jobs/{job['id']}/log").text
    assert "FAILED: <script>top.hacked='failure'</script> </pre> \\u001b[2J" in log
    assert_harmless(log)


@both_widths
def test_the_report_in_a_file(bench: Bench, browser: Browser, tmp_path: Path, width: int, policy: bool) -> None:
    report = bench.client.get("/experiments/report.html", params={"experiment": EXPERIMENT})
    assert report.headers["Content-Disposition"].startswith("attachment;")
    (tmp_path / "report.html").write_bytes(report.content)
    with touring(browser, bench.served, TOKEN, width, policy) as tourist:
        shown = tourist.look_at_file(tmp_path / "report.html").text
    for text in (EXPERIMENT, hostile.SCRIPT, hostile.LONG, hostile.IMAGE, hostile.ESCAPES, hostile.REASON):
        assert is_shown(text, shown), text[:200]
