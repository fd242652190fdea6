"""Airflow's records in our own."""

from tests.airflow.remote.stand_in import NOW_S, a_task, moment
from tipbench.airflow.remote import records


def test_moments_are_rounded_down_so_that_the_page_before_begins_where_this_one_ends() -> None:
    run = {"dag_run_id": "r", "state": "queued", "run_after": "2026-11-15T20:33:15.302999Z", "conf": None, "note": None}
    assert records.parse_dag_run(run).created_ms % 1000 == 302
    assert records.parse_dag_run(run).conf == {}


def test_a_task_that_was_ended_before_a_worker_had_it_has_not_begun() -> None:
    assert records.parse_task(a_task("collect", "running", 0)).has_started
    assert not records.parse_task(a_task("collect", "failed", 1, hostname="")).has_started
    assert not records.parse_task(a_task("collect", "scheduled", 1)).has_started
    assert not records.parse_task(a_task("compare", "upstream_failed")).has_started


def test_a_number_is_no_name() -> None:
    assert records.parse_task(a_task("collect", "running", 1)).label == ""
    assert records.parse_task(a_task("collect", "success", 1, rendered_map_index="gemma3:1b")).label == "gemma3:1b"


def test_a_question_that_is_asked_again_is_another_one() -> None:
    """Airflow keeps the moment of the first question, and the task's start."""
    task = a_task("wait_for_judge", "awaiting_input", queued_when=moment(-1)) | {"dag_run_id": "r1"}
    again = task | {"queued_when": moment(300)}
    first, second = (records.parse_question({"created_at": moment(1), "task_instance": one}) for one in (task, again))
    assert (first.run_id, first.since_ms) == ("r1", round(NOW_S * 1000) + 1_000)
    assert (second.run_id, second.since_ms) == ("r1", round(NOW_S * 1000) + 300_000)
    assert records.parse_task(task) != records.parse_task(again), "what it has logged meanwhile is to be asked for"


def test_a_log_may_be_one_text() -> None:
    assert records.parse_log_part({"content": "all of it"}).events == ({"event": "all of it"},)
    assert records.parse_log_part({"content": ["a", {"event": "b"}], "continuation_token": None}).token == ""
