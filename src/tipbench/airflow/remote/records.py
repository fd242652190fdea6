"""What Airflow tells of a run and its tasks, as far as anybody here wants to know it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tipbench.bench.options import Options

_LIVE = ("queued", "running")
_ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
_AT_IT = ("running", "restarting", "deferred", "up_for_reschedule", "awaiting_input")
DAG_ID = "bench_collect"
PLANNED = "planned"  # of plan
PROGRESS = "progress"  # of each collect, while it goes
PROBLEM = "problem"  # of a task that failed: what a user should read
RETURNED = "return_value"
CANCELLED = "cancelled by tipbench"  # the note of a run that we have ended
APPLIED = "The scores are applied"  # an answer to wait_for_judge


@dataclass(frozen=True)
class DagRun:
    id: str
    state: str
    conf: Mapping[str, Any]
    note: str
    created_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None

    @property
    def ended(self) -> bool:
        return self.state not in _LIVE


@dataclass(frozen=True)
class Task:
    """A task instance: a task of a run, or one of several that it was mapped to."""

    id: str
    map_index: int = -1
    state: str = ""  # empty: nobody has looked at it yet
    try_number: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    queued_ms: int | None = None  # anew each time that it goes on after waiting, where its start stays
    worker: str = ""  # the machine that has it, or had
    pool: str = ""
    label: str = ""  # what its mapped instance is about

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    @property
    def is_at_it(self) -> bool:
        return self.state in _AT_IT

    @property
    def has_begun(self) -> bool:
        """Whether a worker has had it; one that was ended before that has a start, too."""
        return self.started_ms is not None and self.try_number > 0 and bool(self.worker)


@dataclass(frozen=True)
class LogPart:
    """What a task has logged since the last time somebody asked."""

    events: tuple[Mapping[str, Any], ...]
    token: str = field(default="", repr=False)  # to go on with; empty: that was all


@dataclass(frozen=True)
class Question:
    """A task that waits for somebody's answer."""

    run_id: str
    since_ms: int


def dag_run(data: Mapping[str, Any]) -> DagRun:
    conf = data.get("conf")
    return DagRun(
        id=str(data["dag_run_id"]),
        state=str(data["state"]),
        conf=conf if isinstance(conf, dict) else {},
        note=str(data.get("note") or ""),
        created_ms=_needed_ms(data["run_after"]),
        started_ms=_ms(data.get("start_date")),
        ended_ms=_ms(data.get("end_date")),
    )


def task(data: Mapping[str, Any]) -> Task:
    map_index = int(data["map_index"])
    label = str(data.get("rendered_map_index") or "")
    return Task(
        id=str(data["task_id"]),
        map_index=map_index,
        state=str(data.get("state") or ""),
        try_number=int(data.get("try_number") or 0),
        started_ms=_ms(data.get("start_date")),
        ended_ms=_ms(data.get("end_date")),
        queued_ms=_ms(data.get("queued_when")),
        worker=str(data.get("hostname") or ""),
        pool=str(data.get("pool") or ""),
        label="" if label == str(map_index) else label,
    )


def log_part(data: Mapping[str, Any]) -> LogPart:
    content = data["content"]
    events = content if isinstance(content, list) else [content]
    told = tuple(one if isinstance(one, dict) else {"event": str(one)} for one in events)
    return LogPart(told, str(data.get("continuation_token") or ""))


def question(data: Mapping[str, Any]) -> Question:
    """A task that asks again after a while keeps its start and its first question's moment, but was queued anew."""
    task_instance = data["task_instance"]
    moments = (data["created_at"], task_instance.get("start_date"), task_instance.get("queued_when"))
    since_ms = max(_needed_ms(moment) for moment in moments if moment)
    return Question(str(task_instance["dag_run_id"]), since_ms)


def _ms(text: str | None) -> int | None:
    return None if text is None else _needed_ms(text)


def _needed_ms(text: str) -> int:
    """Rounded down, so that runs before this moment are those that Airflow counts as before it."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


PLAN, COLLECT, EXPORT = "plan", "collect", "export_for_judge"
JUDGE, WAIT, COMPARE = "judge", "wait_for_judge", "compare"

# Keys of XComs.

RETRY_FAILED, FRESH = "retry_failed", "fresh"  # beside the options in a run's conf


# What the DAG and whoever watches its runs have agreed on: names of tasks, of what they tell, and of answers.


def is_collect(task_id: str) -> bool:
    """Each host's models are collected by a task of their own."""
    return task_id == COLLECT or task_id.startswith(f"{COLLECT}_")


def conf_of(options: Options, retry_failed: bool, fresh: bool) -> dict[str, Any]:
    """A run's conf; what is left out has its default. The default Ollama is left out: the DAG has hosts of its own."""
    conf = {key: value for key, value in options.model_dump(mode="json").items() if value is not None}
    if options.ollama_url == Options.model_fields["ollama_url"].default:
        del conf["ollama_url"]
    return conf | ({RETRY_FAILED: True} if retry_failed else {}) | ({FRESH: True} if fresh else {})
