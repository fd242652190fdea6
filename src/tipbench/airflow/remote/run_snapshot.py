"""What is known of a run at one moment, asked of Airflow with few requests, however many look at it."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tipbench.airflow.remote.calls import Calls
from tipbench.airflow.remote.records import (
    COMPARE,
    EXPORT,
    JUDGE,
    PLAN,
    PLANNED,
    PROBLEM,
    PROGRESS,
    RETURNED,
    WAIT,
    DagRun,
    Task,
    is_collect,
)
from tipbench.core.cache import LruCache
from tipbench.server.jobs.interface import UnknownJob

FRESH_FOR_S = 0.9  # the panel asks every second, for job, progress and log
_KEPT_RUNS = 200
_VALUES_AT_FIRST = 20  # of a run that goes on; what is left is asked for the next time
_VALUES_AT_ONCE = 4
_TELLING_TASKS = (EXPORT, JUDGE, WAIT, COMPARE)


class ValueKey(NamedTuple):
    task_id: str
    map_index: int
    key: str


@dataclass(frozen=True)
class Moment:
    run: DagRun
    tasks: Sequence[Task]
    values: Mapping[ValueKey, Any]
    is_paused: bool = False  # the DAG, so that the run does not begin

    def task(self, task_id: str) -> Task:
        return next((task for task in self.tasks if task.id == task_id and task.map_index < 0), Task(task_id))

    def value(self, of: Task, key: str) -> Any:
        return self.values.get(ValueKey(of.id, of.map_index, key))

    def table(self, of: Task, key: str) -> Mapping[str, Any]:
        """A value that should be one with names; an empty one where it isn't."""
        found = self.value(of, key)
        return found if isinstance(found, dict) else {}

    @property
    def is_settled(self) -> bool:
        """Nothing happens any more, unless somebody clears a task of it in Airflow."""
        return self.run.ended and not any(task.is_at_it for task in self.tasks)


class Moments:
    """The last moment of each run; at any time one thread at most asks for a newer one."""

    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls = calls
        self._clock = clock
        self._runs: LruCache[_Watched] = LruCache(_KEPT_RUNS)

    def of(self, run_id: str) -> Moment:
        """Raises UnknownJob."""
        watched = self._runs.get_or_make(run_id, _Watched)
        known = watched.moment
        if not watched.looking.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            if watched.moment is None or abs(self._clock() - watched.looked_s) >= FRESH_FOR_S:
                watched.moment = self._look(run_id, watched)
                watched.looked_s = self._clock()
            return watched.moment
        except UnknownJob:
            self._runs.drop(run_id)
            raise
        finally:
            watched.looking.release()

    def forget(self, run_id: str) -> None:
        """Something was done to it: what is known is no longer true."""
        self._runs.drop(run_id)

    def _look(self, run_id: str, watched: "_Watched") -> Moment:
        run = self._calls.run(run_id)
        last = watched.moment
        if last and last.is_settled and last.run == run:
            return last
        tasks = self._calls.tasks(run_id)
        values = self._read(run, tasks, watched)
        named = _named(tasks, values.get(ValueKey(PLAN, -1, PLANNED)))
        return Moment(run, named, values, run.state == "queued" and self._calls.is_paused())

    def _read(self, run: DagRun, tasks: Sequence[Task], watched: "_Watched") -> Mapping[ValueKey, Any]:
        """What a task told stays once the task has ended; of the others, those come first that were asked long ago."""
        wanted = {ValueKey(task.id, task.map_index, key): task for task, key in _wanted(tasks)}
        told = watched.told = {at: one for at, one in watched.told.items() if at in wanted}
        open_ones = [at for at, task in wanted.items() if not (task.ended and at in told and told[at].of == task)]
        open_ones.sort(key=lambda at: told[at].turn if at in told else 0)
        most = _VALUES_AT_ONCE if watched.moment else _VALUES_AT_FIRST
        for at in open_ones[: None if run.ended else most]:
            watched.turn += 1
            told[at] = _Told(self._calls.value(run.id, wanted[at], at.key), wanted[at], watched.turn)
        return {at: one.value for at, one in told.items()}


class _Told(NamedTuple):
    """A value, and the task in the state in which it had told it."""

    value: Any
    of: Task
    turn: int


@dataclass
class _Watched:
    """One run, as it is followed."""

    looking: threading.Lock = field(default_factory=threading.Lock)
    moment: Moment | None = None
    looked_s: float = 0.0
    told: dict[ValueKey, _Told] = field(default_factory=dict)
    turn: int = 0


def _named(tasks: Sequence[Task], planned: Any) -> list[Task]:
    """Airflow has a mapped task's name when it ends, the plan from the beginning: its models, in the tasks' order."""
    models = planned.get("models") if isinstance(planned, dict) else None
    names: dict[tuple[str, int], str] = {}
    for one in models if isinstance(models, list) else ():
        if isinstance(one, dict):
            task_id = str(one.get("task_id"))
            names[task_id, sum(known == task_id for known, _ in names)] = str(one.get("model"))
    return [replace(task, label=names.get((task.id, task.map_index)) or task.label) for task in tasks]


def _wanted(tasks: Sequence[Task]) -> Iterator[tuple[Task, str]]:
    for task in tasks:
        if not task.has_begun:
            continue
        if task.id == PLAN and task.state == "success":
            yield task, PLANNED
        if is_collect(task.id):
            yield task, PROGRESS
        if task.id in _TELLING_TASKS and task.state == "success":
            yield task, RETURNED
        if task.state in ("failed", "up_for_retry"):
            yield task, PROBLEM
