"""Records of runs and tasks, with the parts of Airflow's responses that we use, and the names shared with the DAG."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tipbench.bench.options import Options

_LIVE = ("queued", "running")
_ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
_ACTIVE = ("running", "restarting", "deferred", "up_for_reschedule", "awaiting_input")

# Names that the DAG and the runner share: XCom keys, the note of a cancelled run, an answer.

DAG_ID = "bench_collect"
PLANNED = "planned"  # XCom of plan
PROGRESS = "progress"  # XCom of each collect, while it runs
PROBLEM = "problem"  # XCom of a failed task: the message for users
RETURNED = "return_value"  # XCom of a task that succeeded
CANCELLED = "cancelled by tipbench"  # the note of a run that we have cancelled
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
    state: str = ""  # empty: not scheduled yet
    try_number: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    queued_ms: int | None = None  # set again each time it resumes after waiting, unlike its start
    worker: str = ""  # the machine that runs it, or did
    pool: str = ""
    label: str = ""  # of a mapped instance: the model's name

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    @property
    def is_active(self) -> bool:
        return self.state in _ACTIVE

    @property
    def has_started(self) -> bool:
        """Return whether a worker has started it. Tasks that were ended before that have a start time, too."""
        return self.started_ms is not None and self.try_number > 0 and bool(self.worker)


@dataclass(frozen=True)
class LogPart:
    """What a task has logged since the previous request."""

    events: tuple[Mapping[str, Any], ...]
    token: str = field(default="", repr=False)  # to continue with; empty at the end


@dataclass(frozen=True)
class Question:
    """A task that waits for a person's answer."""

    run_id: str
    since_ms: int


def parse_dag_run(data: Mapping[str, Any]) -> DagRun:
    conf = data.get("conf")
    return DagRun(
        id=str(data["dag_run_id"]),
        state=str(data["state"]),
        conf=conf if isinstance(conf, dict) else {},
        note=str(data.get("note") or ""),
        created_ms=_parse_ms(data["run_after"]),
        started_ms=_parse_optional_ms(data.get("start_date")),
        ended_ms=_parse_optional_ms(data.get("end_date")),
    )


def parse_task(data: Mapping[str, Any]) -> Task:
    map_index = int(data["map_index"])
    label = str(data.get("rendered_map_index") or "")
    return Task(
        id=str(data["task_id"]),
        map_index=map_index,
        state=str(data.get("state") or ""),
        try_number=int(data.get("try_number") or 0),
        started_ms=_parse_optional_ms(data.get("start_date")),
        ended_ms=_parse_optional_ms(data.get("end_date")),
        queued_ms=_parse_optional_ms(data.get("queued_when")),
        worker=str(data.get("hostname") or ""),
        pool=str(data.get("pool") or ""),
        label="" if label == str(map_index) else label,
    )


def parse_log_part(data: Mapping[str, Any]) -> LogPart:
    content = data["content"]
    events = content if isinstance(content, list) else [content]
    parsed = tuple(one if isinstance(one, dict) else {"event": str(one)} for one in events)
    return LogPart(parsed, str(data.get("continuation_token") or ""))


def parse_question(data: Mapping[str, Any]) -> Question:
    """Parse a question. If a task asks again, its start and its first question's time stay, but it was queued again."""
    task_instance = data["task_instance"]
    times = (data["created_at"], task_instance.get("start_date"), task_instance.get("queued_when"))
    since_ms = max(_parse_ms(time) for time in times if time)
    return Question(str(task_instance["dag_run_id"]), since_ms)


def _parse_optional_ms(text: str | None) -> int | None:
    return None if text is None else _parse_ms(text)


def _parse_ms(text: str) -> int:
    """Return milliseconds, rounded down, so that runs before this time are also before it for Airflow."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


# Names that the DAG and the runner share: task ids and flags.

PLAN, COLLECT, EXPORT = "plan", "collect", "export_for_judge"
JUDGE, WAIT, COMPARE = "judge", "wait_for_judge", "compare"
RETRY_FAILED, FRESH = "retry_failed", "fresh"  # besides the options in a run's conf


def is_collect(task_id: str) -> bool:
    """Return whether a task collects; there is one such task per host."""
    return task_id == COLLECT or task_id.startswith(f"{COLLECT}_")


def conf_of(options: Options, retry_failed: bool, fresh: bool) -> dict[str, Any]:
    """Return a run's conf, without unset options and without the default Ollama: the DAG has its own hosts."""
    conf = {key: value for key, value in options.model_dump(mode="json").items() if value is not None}
    if options.ollama_url == Options.model_fields["ollama_url"].default:
        del conf["ollama_url"]
    return conf | ({RETRY_FAILED: True} if retry_failed else {}) | ({FRESH: True} if fresh else {})
