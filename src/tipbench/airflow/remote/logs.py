"""The logs of a run's tasks as one text. What a task has logged is asked for once; of what goes on, what is new."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tipbench.airflow.remote.calls import Calls
from tipbench.airflow.remote.outcomes import name_of
from tipbench.airflow.remote.records import CANCELLED, DagRun, Task
from tipbench.core.cache import LruCache
from tipbench.core.text import utc_second
from tipbench.core.untrusted import printable

MOST_KEPT = 2_000_000  # characters of a run, as much as anybody asks for
_KEPT_RUNS = 8
_REQUESTS = 3  # for a look at the end; a download may take more
_REQUESTS_AT_FIRST = 10
_BYTES_A_REQUEST = 10_000
_OF_AIRFLOW = ("task", "airflow.")  # loggers that tell about Airflow itself, when nothing is wrong


class Logs:
    """At any time one thread at most asks for more of a run's logs."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._runs: LruCache[_RunLog] = LruCache(_KEPT_RUNS)

    def end_of(self, run: DagRun, tasks: Sequence[Task], last_bytes: int) -> str:
        """From the beginning of a line on; a line that is longer than all of it, from its middle."""
        kept = self._runs.get_or_make(run.id, _RunLog)
        begun = sorted((task for task in tasks if task.has_begun), key=lambda task: task.started_ms or 0)
        if kept.asking.acquire(blocking=not kept.parts):
            try:
                self._ask(run, begun, kept, last_bytes)
            finally:
                kept.asking.release()
        parts = dict(kept.parts)
        text = "\n".join(
            f"── {_header(task)}\n{parts[_key(task)].text}" for task in begun if parts.get(_key(task), _Part()).text
        ).encode("utf-8", "replace")
        if len(text) > last_bytes:
            text = text[-last_bytes:]
            _, newline, whole_lines = text.partition(b"\n")
            text = whole_lines if newline else text
        return text.decode("utf-8", "ignore")

    def _ask(self, run: DagRun, begun: Sequence[Task], kept: "_RunLog", last_bytes: int) -> None:
        """The newest first, until there is as much as was asked for."""
        requests = max(_REQUESTS, last_bytes // _BYTES_A_REQUEST)
        if run.ended or not kept.parts:  # nobody may ask a second time, or somebody has only begun to look
            requests = max(requests, len(begun) if run.ended else _REQUESTS_AT_FIRST)
        length = 0
        for task in reversed(begun):
            part = kept.parts.get(_key(task), _Part())
            if not (part.is_whole and part.of == task):
                if requests == 0:
                    break
                requests -= 1
                part = self._more(run, task, part)
                kept.parts[_key(task)] = part
            length += len(part.text)
            if length >= last_bytes:
                break
        kept.trim([_key(task) for task in begun])

    def _more(self, run: DagRun, task: Task, part: "_Part") -> "_Part":
        """Airflow gives a token to go on with, as long as a worker is at the task; without one, all is told again."""
        found = self._calls.log(run.id, task, part.token)
        new = "".join(f"{line}\n" for line in lines_of(found.events))
        # Who cancels a run marks its tasks at once; their workers still have a word to say.
        goes_on = task.state in ("running", "restarting") or (run.note == CANCELLED and task.state == "failed")
        is_whole = not found.token and not goes_on
        return _Part(part.text + new if part.token else new, found.token, is_whole, task)


@dataclass(frozen=True)
class _Part:
    """What is known of one task's log."""

    text: str = ""
    token: str = field(default="", repr=False)
    is_whole: bool = False  # in the state that the task was in
    of: Task | None = None


@dataclass
class _RunLog:
    asking: threading.Lock = field(default_factory=threading.Lock)
    parts: dict[tuple[str, int, int], _Part] = field(default_factory=dict)

    def trim(self, in_order: Sequence[tuple[str, int, int]]) -> None:
        """The oldest go first; what went is not asked for again. Of tries that nobody is shown any more, all goes."""
        room = MOST_KEPT
        fitting: dict[tuple[str, int, int], _Part] = {}
        for key in reversed(in_order):
            if key in self.parts:
                kept = self.parts[key].text[-room:] if room else ""
                fitting[key] = replace(self.parts[key], text=kept)
                room -= len(kept)
        self.parts = fitting


def lines_of(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What our own tasks printed, and what went wrong; nothing of Airflow's housekeeping."""
    told = [event for event in events if not _is_housekeeping(event)]
    for event in told:
        moment = str(event.get("timestamp") or "")[11:19]
        for line in str(event.get("event", "")).splitlines() or [""]:
            yield printable(f"{moment} {line}" if moment else line)
        details = event.get("error_detail")
        for one in details if isinstance(details, list) else ():
            if isinstance(one, dict):
                yield printable(f"{one.get('exc_type')}: {one.get('exc_value')}")


def _is_housekeeping(event: Mapping[str, Any]) -> bool:
    text, logger = str(event.get("event", "")), str(event.get("logger") or "")
    if text.startswith(("::group::", "::endgroup::")):
        return True
    if "timestamp" not in event and "level" not in event:
        return text.endswith(".log")  # where the log was read
    return str(event.get("level")) in ("info", "debug") and (
        logger == _OF_AIRFLOW[0] or logger.startswith(_OF_AIRFLOW[1])
    )


def _key(task: Task) -> tuple[str, int, int]:
    return task.id, task.map_index, task.try_number


def _header(task: Task) -> str:
    about = f"{task.id}, {name_of(task)}" if task.map_index >= 0 else task.id
    again = f", try {task.try_number}" if task.try_number > 1 else ""
    began = utc_second(task.started_ms or 0)
    return printable(f"{about}{again}, begun {began}")
