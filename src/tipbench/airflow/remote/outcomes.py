"""What came of runs, also for a whole list of them."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tipbench.airflow.remote.calls import Calls
from tipbench.airflow.remote.records import CANCELLED, COMPARE, PROBLEM, RETURNED, DagRun, Task, is_collect
from tipbench.core.untrusted import printable
from tipbench.server.jobs.job_watch import KEPT, Ending

_LONGEST = 800
_NAMES_SHOWN = 5
_KEPT_RUNS = 1_000
_ASKED_AT_ONCE = 20  # runs of a list whose own words are not known yet; the others have them the next time


def outcome(run: DagRun, tasks: Sequence[Task], told: Any) -> Ending:
    """Of a run that has ended, from the tasks that decided it and what the one in `telling` has told."""
    if run.state == "success":
        return Ending("finished", 0, sentence(told))
    if run.note == CANCELLED:
        return Ending("cancelled", None, KEPT)
    failed = _failed(tasks)
    if _is_compared(tasks):
        names = listed([name_of(task) for task in failed if is_collect(task.id)]) or "a task"
        why = sentence(told)
        return Ending("finished", 1, f"{names} failed{f': {why}' if why else ''}; all else is compared; {KEPT}")
    if not failed:
        return Ending("failed", None, f"it was marked as failed in Airflow; {KEPT}")
    silent = f"{name_of(failed[0])} failed without a word; its log in Airflow says why"
    return Ending("failed", None, sentence(told) or silent)


def telling(run: DagRun, tasks: Sequence[Task]) -> tuple[Task, str] | None:
    """The task that says best what came of a run that has ended, and under which key."""
    if run.state == "success":
        return Task(COMPARE), RETURNED
    failed = _failed(tasks)
    return (failed[0], PROBLEM) if failed and run.note != CANCELLED else None


def sentence(told: Any) -> str:
    """On one line, also what was a list of problems."""
    text = told.get("in_short") if isinstance(told, dict) else told
    if not isinstance(text, str):
        return ""
    return printable(text.replace(":\n  - ", ": ").replace("\n  - ", "; "), _LONGEST)


def name_of(task: Task) -> str:
    """A model's name where a task is one of a model's."""
    return printable(task.label or (task.id if task.map_index < 0 else f"{task.id} {task.map_index + 1}"), 80)


def listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


class Outcomes:
    """Of many runs with few requests; what is known once is kept. May be used from several threads."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._asking = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def of(self, runs: Sequence[DagRun]) -> Mapping[str, Ending]:
        """By id, of those that have ended."""
        ended = [run for run in runs if run.ended]
        with self._asking:
            self._learn([run for run in ended if run.id not in self._known or self._known[run.id].run != run])
            for run in [run for run in ended if not self._known[run.id].has_told][:_ASKED_AT_ONCE]:
                self._ask(self._known[run.id])
            found = {run.id: self._known[run.id].ending for run in ended}
            while len(self._known) > max(_KEPT_RUNS, len(ended)):
                self._known.popitem(last=False)
        return found

    def _learn(self, runs: Sequence[DagRun]) -> None:
        """Those that failed need their tasks; all of them are asked for together."""
        unclear = [run for run in runs if run.state == "failed" and run.note != CANCELLED]
        decisive = self._calls.decisive(unclear) if unclear else {}
        for run in runs:
            tasks = tuple(decisive.get(run.id, ()))
            self._known[run.id] = _Known(run, tasks, outcome(run, tasks, None), telling(run, tasks) is None)

    def _ask(self, known: "_Known") -> None:
        asked = telling(known.run, known.tasks)
        told = self._calls.value(known.run.id, *asked) if asked else None
        self._known[known.run.id] = _Known(known.run, known.tasks, outcome(known.run, known.tasks, told), True)


@dataclass(frozen=True)
class _Known:
    run: DagRun
    tasks: tuple[Task, ...]
    ending: Ending
    has_told: bool  # in its own words, as far as it has any


def _failed(tasks: Sequence[Task]) -> list[Task]:
    """The first one first."""
    return sorted((task for task in tasks if task.state == "failed"), key=lambda task: task.ended_ms or 0)


def _is_compared(tasks: Sequence[Task]) -> bool:
    return any(task.id == COMPARE and task.state == "success" for task in tasks)
