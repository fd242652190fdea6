"""Snapshots of runs, read from Airflow with few requests, however many clients ask for them."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tipbench.airflow.remote.calls import DagClient
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

FRESH_FOR_S = 0.9  # the panel polls job, progress and log every second
_CACHED_RUNS = 200
_MAX_FIRST_VALUES = 20  # fetched at once for a live run; the rest is fetched next time
_MAX_VALUES = 4
_TASKS_WITH_RESULT = (EXPORT, JUDGE, WAIT, COMPARE)


class ValueKey(NamedTuple):
    task_id: str
    map_index: int
    key: str


@dataclass(frozen=True)
class RunSnapshot:
    """A run with its tasks and their XComs, as read at one time."""

    run: DagRun
    tasks: Sequence[Task]
    values: Mapping[ValueKey, Any]
    is_paused: bool = False  # the DAG is paused, so the run does not start

    def task(self, task_id: str) -> Task:
        return next((task for task in self.tasks if task.id == task_id and task.map_index < 0), Task(task_id))

    def value(self, task: Task, key: str) -> Any:
        return self.values.get(ValueKey(task.id, task.map_index, key))

    def mapping(self, task: Task, key: str) -> Mapping[str, Any]:
        """Return a value that should be a mapping; an empty one if it isn't."""
        found = self.value(task, key)
        return found if isinstance(found, dict) else {}

    @property
    def is_settled(self) -> bool:
        """Return whether the run can't change any more, unless somebody clears one of its tasks in Airflow."""
        return self.run.ended and not any(task.is_active for task in self.tasks)


class SnapshotCache:
    """Caches the last snapshot of each run. For each run, at most one thread at a time reads a newer one."""

    def __init__(self, client: DagClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._runs: LruCache[_Entry] = LruCache(_CACHED_RUNS)

    def of(self, run_id: str) -> RunSnapshot:
        """Return a recent snapshot of a run; raise UnknownJob if there is no such run."""
        entry = self._runs.get_or_make(run_id, _Entry)
        known = entry.snapshot
        if not entry.lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            if entry.snapshot is None or abs(self._clock() - entry.read_s) >= FRESH_FOR_S:
                entry.snapshot = self._load(run_id, entry)
                entry.read_s = self._clock()
            return entry.snapshot
        except UnknownJob:
            self._runs.drop(run_id)
            raise
        finally:
            entry.lock.release()

    def forget(self, run_id: str) -> None:
        """Drop the snapshot of a run that was changed."""
        self._runs.drop(run_id)

    def _load(self, run_id: str, entry: "_Entry") -> RunSnapshot:
        run = self._client.run(run_id)
        last = entry.snapshot
        if last and last.is_settled and last.run == run:
            return last
        tasks = self._client.tasks(run_id)
        values = self._read_values(run, tasks, entry)
        labelled = _label_tasks(tasks, values.get(ValueKey(PLAN, -1, PLANNED)))
        return RunSnapshot(run, labelled, values, run.state == "queued" and self._client.is_paused())

    def _read_values(self, run: DagRun, tasks: Sequence[Task], entry: "_Entry") -> Mapping[ValueKey, Any]:
        """Read XComs. Those of ended tasks are final and cached; others are refreshed, least recently read first."""
        wanted = {ValueKey(task.id, task.map_index, key): task for task, key in _wanted(tasks)}
        cached = entry.values = {key: value for key, value in entry.values.items() if key in wanted}
        stale = [key for key, task in wanted.items() if not (task.ended and key in cached and cached[key].task == task)]
        stale.sort(key=lambda key: cached[key].sequence if key in cached else 0)
        limit = _MAX_VALUES if entry.snapshot else _MAX_FIRST_VALUES
        for key in stale[: None if run.ended else limit]:
            entry.sequence += 1
            cached[key] = _CachedValue(self._client.xcom(run.id, wanted[key], key.key), wanted[key], entry.sequence)
        return {key: value.value for key, value in cached.items()}


class _CachedValue(NamedTuple):
    """An XCom, the task in the state in which it was read, and the sequence number of that read."""

    value: Any
    task: Task
    sequence: int


@dataclass
class _Entry:
    """The cache's entry for one run."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshot: RunSnapshot | None = None
    read_s: float = 0.0
    values: dict[ValueKey, _CachedValue] = field(default_factory=dict)
    sequence: int = 0


def _label_tasks(tasks: Sequence[Task], planned: Any) -> list[Task]:
    """Label mapped tasks with their models from the plan, in order; Airflow has the labels only when the tasks end."""
    models = planned.get("models") if isinstance(planned, dict) else None
    names: dict[tuple[str, int], str] = {}
    for one in models if isinstance(models, list) else ():
        if isinstance(one, dict):
            task_id = str(one.get("task_id"))
            names[task_id, sum(known == task_id for known, _ in names)] = str(one.get("model"))
    return [replace(task, label=names.get((task.id, task.map_index)) or task.label) for task in tasks]


def _wanted(tasks: Sequence[Task]) -> Iterator[tuple[Task, str]]:
    """Yield the tasks and the keys of the XComs that they should have in their state."""
    for task in tasks:
        if not task.has_started:
            continue
        if task.id == PLAN and task.state == "success":
            yield task, PLANNED
        if is_collect(task.id):
            yield task, PROGRESS
        if task.id in _TASKS_WITH_RESULT and task.state == "success":
            yield task, RETURNED
        if task.state in ("failed", "up_for_retry"):
            yield task, PROBLEM
