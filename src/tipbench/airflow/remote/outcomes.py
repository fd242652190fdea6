"""The outcomes of runs, for one run or a whole list of them."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tipbench.airflow.remote.calls import DagClient
from tipbench.airflow.remote.records import CANCELLED, COMPARE, PROBLEM, RETURNED, DagRun, Task, is_collect
from tipbench.core.untrusted import printable
from tipbench.server.jobs.job_watch import RESUMABLE_NOTE, Ending

_MAX_CHARS = 800
_MAX_NAMES = 5
_CACHED_RUNS = 1_000
_MAX_MESSAGES = 20  # fetched at once for the runs of a list; the others are fetched next time


def outcome(run: DagRun, tasks: Sequence[Task], reported: Any) -> Ending:
    """Return the outcome of a run that has ended, from its decisive tasks and the XCom named by `outcome_source`."""
    if run.state == "success":
        return Ending("finished", 0, one_line(reported))
    if run.note == CANCELLED:
        return Ending("cancelled", None, RESUMABLE_NOTE)
    failed = _failed(tasks)
    if _is_compared(tasks):
        names = join_names([name_of(task) for task in failed if is_collect(task.id)]) or "a task"
        why = one_line(reported)
        return Ending(
            "finished", 1, f"{names} failed{f': {why}' if why else ''}; everything else was compared; {RESUMABLE_NOTE}"
        )
    if not failed:
        return Ending("failed", None, f"it was marked as failed in Airflow; {RESUMABLE_NOTE}")
    fallback = f"{name_of(failed[0])} failed without a message; its log in Airflow says why"
    return Ending("failed", None, one_line(reported) or fallback)


def outcome_source(run: DagRun, tasks: Sequence[Task]) -> tuple[Task, str] | None:
    """Return the task and XCom key that best describe how a run ended; None if no task does."""
    if run.state == "success":
        return Task(COMPARE), RETURNED
    failed = _failed(tasks)
    return (failed[0], PROBLEM) if failed and run.note != CANCELLED else None


def one_line(reported: Any) -> str:
    """Return what a task reported on one line, also if it is a list of problems; empty if it is no text."""
    text = reported.get("in_short") if isinstance(reported, dict) else reported
    if not isinstance(text, str):
        return ""
    return printable(text.replace(":\n  - ", ": ").replace("\n  - ", "; "), _MAX_CHARS)


def name_of(task: Task) -> str:
    """Return the name of a task to show: the model's, if the task is for one."""
    return printable(task.label or (task.id if task.map_index < 0 else f"{task.id} {task.map_index + 1}"), 80)


def join_names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


class OutcomeCache:
    """Finds the outcomes of many runs with few requests, and caches them. Thread-safe."""

    def __init__(self, client: DagClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def of(self, runs: Sequence[DagRun]) -> Mapping[str, Ending]:
        """Return the outcomes of those runs that have ended, by run id."""
        ended = [run for run in runs if run.ended]
        with self._lock:
            self._load([run for run in ended if run.id not in self._known or self._known[run.id].run != run])
            for run in [run for run in ended if not self._known[run.id].has_message][:_MAX_MESSAGES]:
                self._fetch_message(self._known[run.id])
            found = {run.id: self._known[run.id].ending for run in ended}
            while len(self._known) > max(_CACHED_RUNS, len(ended)):
                self._known.popitem(last=False)
        return found

    def _load(self, runs: Sequence[DagRun]) -> None:
        """Cache the outcomes of runs, still without messages. The tasks of all failed runs are fetched together."""
        unclear = [run for run in runs if run.state == "failed" and run.note != CANCELLED]
        decisive = self._client.decisive_tasks(unclear) if unclear else {}
        for run in runs:
            tasks = tuple(decisive.get(run.id, ()))
            self._known[run.id] = _Known(run, tasks, outcome(run, tasks, None), outcome_source(run, tasks) is None)

    def _fetch_message(self, known: "_Known") -> None:
        source = outcome_source(known.run, known.tasks)
        reported = self._client.xcom(known.run.id, *source) if source else None
        self._known[known.run.id] = _Known(known.run, known.tasks, outcome(known.run, known.tasks, reported), True)


@dataclass(frozen=True)
class _Known:
    run: DagRun
    tasks: tuple[Task, ...]
    ending: Ending
    has_message: bool  # its own message was fetched, or it has none


def _failed(tasks: Sequence[Task]) -> list[Task]:
    """Return the failed tasks in the order in which they failed."""
    return sorted((task for task in tasks if task.state == "failed"), key=lambda task: task.ended_ms or 0)


def _is_compared(tasks: Sequence[Task]) -> bool:
    return any(task.id == COMPARE and task.state == "success" for task in tasks)
