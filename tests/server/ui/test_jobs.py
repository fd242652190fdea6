"""A job's page lives while the job does, and then says what to do next."""

from dataclasses import replace

import pytest

from tests.bench.compare.html.parsed import Node, parsed
from tests.server.ui.made_panel import NOW_S, MadeRunner, a_job, a_progress
from tests.server.ui.visits import Guest, by_id, links, page_at, visit
from tipbench.server.jobs.interface import UnknownJob
from tipbench.server.ui import urls

NAME = "tip-bench-2026-04-27"


def running() -> tuple[MadeRunner, Guest]:
    runner = MadeRunner({"j1": a_job()}, {"j1": a_progress()}, "[1/36] fine\n")
    return runner, visit(runner=runner)


def ids(page: Node) -> list[str | None]:
    return [node.attributes["id"] for node in page.all() if "id" in node.attributes]


def test_a_running_job_shows_how_far_it_is() -> None:
    _, client = running()
    page = page_at(client, "/jobs/j1")
    told = by_id(page, "job-live").words
    assert "running Collecting" in told
    assert "running for 1 min 30 s" in told
    assert "20 of 36 cells generated, 1 failed; 12 were stored already. About 2 min 10 s left." in told
    assert "gemma3:1b × v1 × nurse-morning the engine took longer than 600 s" in told
    assert by_id(page, "job-log").text == "[1/36] fine\n"
    assert [(bar.attributes["value"], bar.attributes["max"]) for bar in page.all("progress")] == [("20", "36")]
    assert "n_tips 5" in page.words
    assert by_id(page, "job-live").attributes["hx-trigger"] == "every 1s"


def test_asking_again_brings_what_changed_and_phases_are_said_aloud() -> None:
    runner, client = running()
    ask = by_id(page_at(client, "/jobs/j1"), "job-live").attributes["hx-get"] or ""
    assert client.get(ask).status_code == 204

    runner.told["j1"] = a_progress(done=21)
    page = page_at(client, ask)
    assert "21 of 36" in page.words
    assert "job-said" not in ids(page)  # not every second

    runner.told["j1"] = a_progress(phase="judge")
    page = page_at(client, ask)
    assert by_id(page, "job-said").words.startswith("Judging.")
    assert by_id(page, "job-said").attributes["hx-swap-oob"] == "innerHTML"


def test_how_long_it_runs_goes_on_while_nothing_else_happens() -> None:
    now = [NOW_S]
    client = visit(runner=MadeRunner({"j1": a_job()}), clock=lambda: now[0])
    ask = by_id(page_at(client, "/jobs/j1"), "job-live").attributes["hx-get"] or ""
    now[0] += 10
    assert "running for 1 min 40 s" in page_at(client, ask).words


@pytest.mark.parametrize("state", ["finished", "failed", "cancelled"])
def test_with_the_jobs_end_the_asking_ends(state: str) -> None:
    runner, client = running()
    ask = by_id(page_at(client, "/jobs/j1"), "job-live").attributes["hx-get"] or ""
    runner.found["j1"] = a_job(state=state)
    answer = client.get(ask)
    assert answer.status_code == 286
    page = parsed(answer.text)
    assert "hx-trigger" not in by_id(page, "job-live").attributes
    assert [node.words for node in by_id(page, "job-actions").all("button")] == ["Run again"]
    assert state.capitalize() in by_id(page, "job-said").words
    assert "hx-trigger" not in by_id(page_at(client, "/jobs/j1"), "job-live").attributes


def test_a_finished_job_leads_to_judging_and_to_the_leaderboard() -> None:
    runner = MadeRunner({"j1": a_job(state="finished")}, {"j1": a_progress(phase="done", waiting_items=60)})
    live = by_id(page_at(visit(runner=runner), "/jobs/j1"), "job-live")
    assert "When it ended, 60 items waited for a judge." in live.words
    assert links(live) == [urls.judging(NAME), urls.leaderboard(NAME)]

    runner.told["j1"] = a_progress(phase="done", waiting_items=0)
    assert links(by_id(page_at(visit(runner=runner), "/jobs/j1"), "job-live")) == [urls.leaderboard(NAME)]


def test_a_failed_job_says_why_and_what_is_kept() -> None:
    failed = replace(a_job(state="failed"), message="Ollama does not answer; start it.")
    runner = MadeRunner({"j1": failed}, {"j1": a_progress()})
    told = by_id(page_at(visit(runner=runner), "/jobs/j1"), "job-live").words
    assert "Ollama does not answer; start it." in told
    assert "Everything generated so far is stored" in told


def test_cancelling_asks_first_and_is_then_under_way() -> None:
    runner, client = running()
    page = page_at(client, "/jobs/j1")
    (button,) = next(page.all("details", "confirm")).all("button")
    answer = client.post(button.attributes["hx-post"] or "")
    assert answer.status_code == 200
    assert runner.found["j1"].cancelling
    assert "Cancelling" in answer.text
    assert "<button" not in answer.text
    assert "running Cancelling" in page_at(client, "/jobs/j1").words


def test_the_list_has_the_newest_first_and_goes_back_in_time() -> None:
    jobs = {f"j{n}": replace(a_job(f"j{n}", "finished"), created_ms=n) for n in range(60)}
    client = visit(runner=MadeRunner(jobs))
    page = page_at(client, "/jobs")
    (table,) = page.all("table")
    assert links(table) == [f"/jobs/j{n}" for n in range(59, 9, -1)]
    (older,) = [link for link in links(page) if "before=" in link]
    page = page_at(client, older)
    assert links(next(page.all("table"))) == [f"/jobs/j{n}" for n in range(9, -1, -1)]
    assert not [link for link in links(page) if "before=" in link]


def test_without_jobs_it_says_how_to_start_one() -> None:
    page = page_at(visit(), "/jobs")
    assert "No jobs yet. Run Collection starts one." in page.words


def test_a_job_that_is_not_there_is_not_made_up() -> None:
    with pytest.raises(UnknownJob):
        visit().get("/jobs/nothing")


def test_an_ended_job_can_be_run_again_with_the_same_configuration() -> None:
    runner = MadeRunner({"j1": a_job(state="cancelled")}, {"j1": a_progress()})
    client = visit(runner=runner)
    assert "Run again" in page_at(client, "/jobs/j1").words
    answer = client.post("/jobs/j1/again")
    assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/jobs/job1")
    [(options, retry_failed, fresh)] = runner.started
    given = {key: value for key, value in a_job().config.items() if value is not None}
    assert {key: getattr(options, key) for key in given} == given
    assert (retry_failed, fresh) == (True, False)
    assert "Run again" not in page_at(client, "/jobs/job1").words
    runner.found["j2"] = replace(a_job(state="failed"), config={"experiment": "e", "n_tips": 0})
    assert client.post("/jobs/j2/again").status_code == 422


def test_a_job_that_waits_for_a_judge_leads_to_judging() -> None:
    waits = a_progress(phase="judge", waiting_items=8, message="waits for the scores")
    page = page_at(visit(runner=MadeRunner({"j1": a_job()}, {"j1": waits})), "/jobs/j1")
    assert "8 items wait for a judge." in page.words
    assert urls.judging("tip-bench-2026-04-27") in links(page)
    goes_on = visit(runner=MadeRunner({"j1": a_job()}, {"j1": a_progress(waiting_items=8)}))
    assert "Judge now" not in page_at(goes_on, "/jobs/j1").words
