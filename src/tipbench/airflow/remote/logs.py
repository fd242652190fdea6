"""The logs of a run's tasks as one text. Finished logs are fetched once, growing ones incrementally."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tipbench.airflow.remote.calls import DagClient
from tipbench.airflow.remote.outcomes import name_of
from tipbench.airflow.remote.records import CANCELLED, DagRun, Task
from tipbench.core.cache import LruCache
from tipbench.core.text import utc_second
from tipbench.core.untrusted import printable

MAX_CACHED_CHARS = 2_000_000  # of a run; as many as anybody asks for
_CACHED_RUNS = 8
_MAX_REQUESTS = 3  # for the end of a log; a download may take more
_MAX_FIRST_REQUESTS = 10
_BYTES_PER_REQUEST = 10_000
_AIRFLOW_LOGGERS = ("task", "airflow.")  # whose info lines are about Airflow itself


class Logs:
    """Fetches and caches logs. For each run, at most one thread at a time asks Airflow for more."""

    def __init__(self, client: DagClient) -> None:
        self._client = client
        self._runs: LruCache[_RunLog] = LruCache(_CACHED_RUNS)

    def tail(self, run: DagRun, tasks: Sequence[Task], last_bytes: int) -> str:
        """Return the last bytes of a run's log, from the start of a line unless a single line is longer than that."""
        cached = self._runs.get_or_make(run.id, _RunLog)
        started = sorted((task for task in tasks if task.has_started), key=lambda task: task.started_ms or 0)
        if cached.lock.acquire(blocking=not cached.parts):
            try:
                self._fetch(run, started, cached, last_bytes)
            finally:
                cached.lock.release()
        parts = dict(cached.parts)
        text = "\n".join(
            f"── {_header(task)}\n{parts[_key(task)].text}" for task in started if parts.get(_key(task), _Part()).text
        ).encode("utf-8", "replace")
        if len(text) > last_bytes:
            text = text[-last_bytes:]
            _, newline, whole_lines = text.partition(b"\n")
            text = whole_lines if newline else text
        return text.decode("utf-8", "ignore")

    def _fetch(self, run: DagRun, started: Sequence[Task], cached: "_RunLog", last_bytes: int) -> None:
        """Fetch logs, newest task first, until there is as much as was asked for or the requests are used up."""
        requests = max(_MAX_REQUESTS, last_bytes // _BYTES_PER_REQUEST)
        if run.ended or not cached.parts:  # there may be no second call, or this is the first
            requests = max(requests, len(started) if run.ended else _MAX_FIRST_REQUESTS)
        length = 0
        for task in reversed(started):
            part = cached.parts.get(_key(task), _Part())
            if not (part.is_complete and part.task == task):
                if requests == 0:
                    break
                requests -= 1
                part = self._fetch_more(run, task, part)
                cached.parts[_key(task)] = part
            length += len(part.text)
            if length >= last_bytes:
                break
        cached.trim([_key(task) for task in started])

    def _fetch_more(self, run: DagRun, task: Task, part: "_Part") -> "_Part":
        """Fetch more of a task's log: what follows the token that Airflow gives while the task runs, or everything."""
        found = self._client.log(run.id, task, part.token)
        new = "".join(f"{line}\n" for line in lines_of(found.events))
        # Cancelling a run marks its tasks as failed at once, while their workers still log.
        may_grow = task.state in ("running", "restarting") or (run.note == CANCELLED and task.state == "failed")
        is_complete = not found.token and not may_grow
        return _Part(part.text + new if part.token else new, found.token, is_complete, task)


@dataclass(frozen=True)
class _Part:
    """What is cached of one task's log."""

    text: str = ""
    token: str = field(default="", repr=False)
    is_complete: bool = False  # for the task in this state
    task: Task | None = None


@dataclass
class _RunLog:
    lock: threading.Lock = field(default_factory=threading.Lock)
    parts: dict[tuple[str, int, int], _Part] = field(default_factory=dict)

    def trim(self, keys: Sequence[tuple[str, int, int]]) -> None:
        """Drop the oldest text beyond the limit, which is not fetched again, and all parts that are not in `keys`."""
        remaining = MAX_CACHED_CHARS
        trimmed: dict[tuple[str, int, int], _Part] = {}
        for key in reversed(keys):
            if key in self.parts:
                text = self.parts[key].text[-remaining:] if remaining else ""
                trimmed[key] = replace(self.parts[key], text=text)
                remaining -= len(text)
        self.parts = trimmed


def lines_of(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the lines that our tasks printed, and errors; without Airflow's own housekeeping."""
    relevant = [event for event in events if not _is_housekeeping(event)]
    for event in relevant:
        time = str(event.get("timestamp") or "")[11:19]
        for line in str(event.get("event", "")).splitlines() or [""]:
            yield printable(f"{time} {line}" if time else line)
        details = event.get("error_detail")
        for one in details if isinstance(details, list) else ():
            if isinstance(one, dict):
                yield printable(f"{one.get('exc_type')}: {one.get('exc_value')}")


def _is_housekeeping(event: Mapping[str, Any]) -> bool:
    text, logger = str(event.get("event", "")), str(event.get("logger") or "")
    if text.startswith(("::group::", "::endgroup::")):
        return True
    if "timestamp" not in event and "level" not in event:
        return text.endswith(".log")  # the path the log was read from
    return str(event.get("level")) in ("info", "debug") and (
        logger == _AIRFLOW_LOGGERS[0] or logger.startswith(_AIRFLOW_LOGGERS[1])
    )


def _key(task: Task) -> tuple[str, int, int]:
    return task.id, task.map_index, task.try_number


def _header(task: Task) -> str:
    name = f"{task.id}, {name_of(task)}" if task.map_index >= 0 else task.id
    again = f", try {task.try_number}" if task.try_number > 1 else ""
    began = utc_second(task.started_ms or 0)
    return printable(f"{name}{again}, begun {began}")
