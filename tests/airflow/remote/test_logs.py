"""The logs of all tasks as one text, asked for piece by piece."""

from typing import Any

from tests.airflow.remote.stand_in import StandIn, a_task, moment
from tipbench.airflow.remote.logs import Logs, _RunLog, lines_of

HOUSEKEEPING = [
    {"event": "::group::Log message source details"},
    {"event": "/logs/dag_id=bench_collect/attempt=1.log"},
    {"event": "::endgroup::"},
    {"timestamp": moment(0), "event": "::group::Pre Execute", "level": "info", "logger": "task"},
    {"timestamp": moment(0), "event": "DAG bundles loaded", "level": "info", "logger": "airflow.dag_processing.x"},
]


def printed(text: str, seconds: float = 0) -> dict[str, Any]:
    return {"timestamp": moment(seconds), "event": text, "level": "info", "logger": "task.stdout"}


def running(airflow: StandIn, *tasks: dict[str, Any]) -> None:
    airflow.add("r1", "running", *tasks)
    for task in tasks:
        airflow.logs["r1", task["task_id"], task["map_index"], task["try_number"]] = [
            *HOUSEKEEPING,
            printed(f"{task['task_id']} {task['map_index']} begins"),
        ]


def end(airflow: StandIn, logs: Logs, last_bytes: int = 20_000) -> str:
    calls = airflow.calls()
    run, tasks = calls.run("r1"), calls.tasks("r1")
    airflow.requests.clear()
    return logs.tail(run, tasks, last_bytes)


def test_every_task_that_has_begun_has_its_part_in_order(airflow: StandIn) -> None:
    again = {"try_number": 2, "start_date": moment(9), "rendered_map_index": "gemma3:1b"}
    running(
        airflow,
        a_task("collect", "running", 1, **again),
        a_task("plan"),
        a_task("collect", "scheduled", 2),
        a_task("collect", "success", 0, start_date=moment(5)),
    )
    assert end(airflow, Logs(airflow.calls())).splitlines() == [
        "── plan, begun 2026-11-15 20:36:40 UTC",
        "20:36:40 plan -1 begins",
        "",
        "── collect, collect 1, begun 2026-11-15 20:36:45 UTC",
        "20:36:40 collect 0 begins",
        "",
        "── collect, gemma3:1b, try 2, begun 2026-11-15 20:36:49 UTC",
        "20:36:40 collect 1 begins",
    ]


def test_of_what_runs_only_what_is_new_is_asked_for(airflow: StandIn) -> None:
    running(airflow, a_task("plan"), a_task("collect", "running", 0, start_date=moment(5)))
    logs = Logs(airflow.calls())
    end(airflow, logs)
    airflow.logs["r1", "collect", 0, 1].append(printed("more"))
    assert end(airflow, logs).endswith("collect 0 begins\n20:36:40 more\n")
    assert [str(request.url.params.get("token")) for request in airflow.requests] == ["from-6"]
    airflow.tasks["r1"][-1] |= {"state": "success"}
    airflow.logs["r1", "collect", 0, 1].append(printed("the last"))
    whole = end(airflow, logs)
    assert whole.endswith("collect 0 begins\n20:36:40 more\n20:36:40 the last\n")
    assert whole.count("begins") == 2
    assert end(airflow, logs) == whole
    assert airflow.requests == []


def test_a_task_that_waits_is_not_asked_for_again(airflow: StandIn) -> None:
    running(airflow, a_task("wait_for_judge", "awaiting_input"))
    logs = Logs(airflow.calls())
    first = end(airflow, logs)
    assert end(airflow, logs) == first
    assert airflow.requests == []
    airflow.tasks["r1"][0] |= {"state": "running"}
    airflow.logs["r1", "wait_for_judge", -1, 1].append(printed("woken"))
    assert end(airflow, logs) == first + "20:36:40 woken\n"


def test_the_last_words_after_a_cancelling_are_not_lost(airflow: StandIn) -> None:
    running(airflow, a_task("plan"), a_task("collect", "failed", 0, start_date=moment(5)))
    airflow.runs["r1"] |= {"state": "failed", "note": "cancelled by tipbench"}
    logs = Logs(airflow.calls())
    end(airflow, logs)
    airflow.logs["r1", "collect", 0, 1].append(printed("the model is unloaded"))
    assert end(airflow, logs).endswith("collect 0 begins\n20:36:40 the model is unloaded\n")
    assert len(airflow.requests) == 1


def test_many_tasks_are_asked_for_in_time_the_newest_first(airflow: StandIn) -> None:
    running(airflow, *(a_task("collect", "success", index, start_date=moment(index)) for index in range(16)))
    logs = Logs(airflow.calls())
    first = end(airflow, logs)
    assert [f"collect {index} begins" in first for index in range(16)] == [False] * 6 + [True] * 10
    second = end(airflow, logs)
    assert len(airflow.requests) == 3
    assert [f"collect {index} begins" in second for index in range(16)] == [False] * 3 + [True] * 13
    assert end(airflow, logs).count("begins") == 16
    assert end(airflow, Logs(airflow.calls()), last_bytes=2_000_000).count("begins") == 16


def test_of_a_run_that_has_ended_everything_is_there_at_once(airflow: StandIn) -> None:
    running(airflow, *(a_task("collect", "success", index, start_date=moment(index)) for index in range(16)))
    airflow.runs["r1"]["state"] = "success"
    assert end(airflow, Logs(airflow.calls())).count("begins") == 16


def test_the_end_begins_with_a_whole_line(airflow: StandIn) -> None:
    running(airflow, a_task("plan"))
    airflow.logs["r1", "plan", -1, 1] = [printed(f"line {number} ä") for number in range(1000)]
    found = end(airflow, Logs(airflow.calls()), last_bytes=200)
    assert len(found.encode()) <= 200
    assert all(line.startswith("20:36:40 line ") for line in found.splitlines())
    assert found.endswith("line 999 ä\n")


def test_memory_is_bounded(airflow: StandIn) -> None:
    running(airflow, *(a_task("collect", "success", index, start_date=moment(index)) for index in range(4)))
    for index in range(4):
        airflow.logs["r1", "collect", index, 1] = [printed(str(index) * 900_000)]
    logs = Logs(airflow.calls())
    assert len(end(airflow, logs, last_bytes=50_000_000)) < 2_000_500
    end(airflow, logs, last_bytes=50_000_000)
    assert airflow.requests == []


def test_of_a_try_before_nothing_is_kept(airflow: StandIn) -> None:
    logs = Logs(airflow.calls())
    running(airflow, a_task("collect", "running", 0))
    end(airflow, logs)
    running(airflow, a_task("collect", "running", 0, try_number=2))
    assert "try 2" in end(airflow, logs)
    assert list(logs._runs.get_or_make("r1", _RunLog).parts) == [("collect", 0, 2)]


def test_what_was_printed_is_printable_and_what_went_wrong_is_named() -> None:
    raised = {"exc_type": "RuntimeError", "exc_value": "no\x1b[2J", "frames": [{"filename": "x", "lineno": 1}]}
    events: list[dict[str, Any]] = [
        *HOUSEKEEPING,
        printed("red \x1b[31m\nand more\r"),
        {
            "timestamp": moment(1),
            "event": "Task failed",
            "level": "error",
            "logger": "task",
            "error_detail": [raised, 5],
        },
        {"event": "Could not read served logs: timed out"},
        {},
        {"event": None, "error_detail": "odd"},
    ]
    assert list(lines_of(events)) == [
        "20:36:40 red \\u001b[31m",
        "20:36:40 and more",
        "20:36:41 Task failed",
        "RuntimeError: no\\u001b[2J",
        "Could not read served logs: timed out",
        "",
        "None",
    ]


def test_a_log_that_is_not_there_is_empty(airflow: StandIn) -> None:
    airflow.add("r1", "running", a_task("plan"))
    assert end(airflow, Logs(airflow.calls())) == ""
