"""What came of runs, for one and for a list."""

from typing import Any

import pytest

from tests.airflow.remote.stand_in import StandIn, a_task, moment, story
from tipbench.airflow.remote.outcomes import OutcomeCache, join_names, outcome, outcome_source
from tipbench.airflow.remote.records import DagRun, Task
from tipbench.server.jobs.job_watch import Ending

FAILED = Task("collect", 1, "failed", ended_ms=5, label="gemma3:1b")
LATER = Task("export_for_judge", -1, "failed", ended_ms=9)
COMPARED = Task("compare", -1, "success")


def a_run(state: str = "failed", note: str = "") -> DagRun:
    return DagRun("r1", state, {}, note, 0)


def test_a_success_says_what_was_found() -> None:
    assert outcome_source(a_run("success"), []) == (Task("compare"), "return_value")
    assert outcome(a_run("success"), [], {"in_short": "a leads"}) == Ending("finished", 0, "a leads")
    assert outcome(a_run("success"), [], None) == Ending("finished", 0, "")


def test_a_cancelled_run_is_no_failure() -> None:
    ending = outcome(a_run(note="cancelled by tipbench"), [FAILED], "a problem")
    assert (ending.state, ending.exit_status) == ("cancelled", None)
    assert "everything it stored is safe" in ending.message
    assert outcome_source(a_run(note="cancelled by tipbench"), [FAILED]) is None


def test_what_was_compared_is_finished_without_the_models_that_failed() -> None:
    ending = outcome(a_run(), [COMPARED, FAILED, LATER], "its server ended")
    assert (ending.state, ending.exit_status) == ("finished", 1)
    assert ending.message.startswith("gemma3:1b failed: its server ended; everything else was compared")
    assert outcome(a_run(), [COMPARED, FAILED], None).message.startswith(
        "gemma3:1b failed; everything else was compared"
    )


def test_a_failure_says_why_in_the_words_of_the_first_task_that_failed() -> None:
    assert outcome_source(a_run(), [LATER, FAILED]) == (FAILED, "problem")
    assert outcome(a_run(), [LATER, FAILED], "pull it\x1b") == Ending("failed", None, "pull it\\u001b")


def test_a_list_of_problems_becomes_one_line() -> None:
    told = "the request can't be run:\n  - models: gone\n  - prompts: v9"
    assert outcome(a_run(), [FAILED], told).message == "the request can't be run: models: gone; prompts: v9"


@pytest.mark.parametrize("told", [None, "", 5, ["x"], {"no": "words"}])
def test_a_failure_without_words_leads_to_the_log(told: Any) -> None:
    assert "gemma3:1b failed without a message; its log in Airflow" in outcome(a_run(), [FAILED], told).message


def test_a_failure_without_a_failed_task_was_somebodys_hand() -> None:
    assert "marked as failed in Airflow" in outcome(a_run(), [], None).message


def test_long_lists_are_cut() -> None:
    assert join_names(["a"]) == "a"
    assert join_names([*"abcdefg"]) == "a, b, c, d, e and 2 more"


def many(airflow: StandIn, count: int) -> None:
    for number in range(count):
        run_id = f"r{number}"
        if number % 2:
            airflow.add(run_id, "success", *story(), created_s=number)
            airflow.tell("compare", "return_value", {"in_short": f"found {number}"}, run_id=run_id)
        else:
            failed = a_task("plan", "failed", end_date=moment(3))
            airflow.add(run_id, "failed", failed, a_task("export_for_judge", "failed"), created_s=number)
            airflow.tell("plan", "problem", f"problem {number}", run_id=run_id)


def test_a_list_takes_few_requests_and_then_none(airflow: StandIn) -> None:
    many(airflow, 6)
    calls = airflow.calls()
    runs = calls.newest_runs(10, None)
    outcomes = OutcomeCache(calls)
    airflow.paths()
    first = outcomes.of(runs)
    assert first["r0"] == Ending("failed", None, "problem 0")
    assert first["r5"] == Ending("finished", 0, "found 5")
    assert len(airflow.paths()) == 2 + 6
    assert outcomes.of(runs) == first
    assert airflow.paths() == []


def test_a_long_list_has_all_states_at_once_and_all_words_in_time(airflow: StandIn) -> None:
    many(airflow, 50)
    calls = airflow.calls()
    runs = calls.newest_runs(50, None)
    outcomes = OutcomeCache(calls)
    airflow.paths()
    first = outcomes.of(runs)
    assert len(airflow.paths()) == 2 + 20
    assert [first[f"r{n}"].state for n in range(50)] == ["failed", "finished"] * 25
    outcomes.of(runs)
    last = outcomes.of(runs)
    assert all(last[f"r{n}"].message == (f"found {n}" if n % 2 else f"problem {n}") for n in range(50))


def test_a_run_that_was_cleared_and_ended_again_is_looked_at_again(airflow: StandIn) -> None:
    many(airflow, 1)
    calls = airflow.calls()
    outcomes = OutcomeCache(calls)
    assert outcomes.of(calls.newest_runs(1, None))["r0"].state == "failed"
    airflow.runs["r0"] |= {"state": "running", "end_date": None}
    assert outcomes.of(calls.newest_runs(1, None)) == {}
    airflow.runs["r0"] |= {"state": "success", "end_date": moment(99)}
    assert outcomes.of(calls.newest_runs(1, None))["r0"].state == "finished"
