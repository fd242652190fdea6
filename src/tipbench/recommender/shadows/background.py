"""A best-effort background executor: tasks are done in time or dropped, and offering one never blocks.

One thread works at a time. A thread can't be killed, so one that exceeds its timeout is left to itself and another
takes over; once all threads are stuck, everything is dropped until one returns. A result that arrives too late is
dropped too. Nothing is dropped without being counted.

After an idle period, work starts with a short delay: threads share the interpreter, and the caller has an answer to
send first. What arrives during the delay is done in one go.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

TIMEOUT_S = 0.2  # from offer to publication
MOST_WAITING = 100
THREADS = 2  # also how many can be stuck: one that computes forever takes its share of the interpreter forever
_START_DELAY_S = 0.02
_CLOSE_TIMEOUT_S = 1.0
T = TypeVar("T")
R = TypeVar("R")
_Outcome = Literal["published", "late", "failed"]


@dataclass(frozen=True)
class Counts:
    """How offered tasks ended: each one is published, dropped, or still in flight."""

    offered: int = 0
    published: int = 0
    full: int = 0  # dropped: the queue was full
    late: int = 0  # dropped: timed out
    failed: int = 0  # dropped: it raised

    @property
    def dropped(self) -> int:
        return self.full + self.late + self.failed

    @property
    def in_flight(self) -> int:
        return self.offered - self.published - self.dropped

    def as_data(self) -> dict[str, Any]:
        dropped = {"full": self.full, "late": self.late, "failed": self.failed}
        return {
            "offered": self.offered,
            "published": self.published,
            "dropped": dropped,
            "in_flight": self.in_flight,
        }


class Done(NamedTuple, Generic[T, R]):
    """A result that was ready in time, to be published."""

    item: T
    result: R
    waited_s: float
    took_s: float
    counts: Counts  # in which this task is still in flight


class _Task(Generic[T]):
    def __init__(self, item: T, late_at: float) -> None:
        self.item = item
        self.late_at = late_at
        self.stage: Literal["working", "publishing", "counted"] = "working"


class BackgroundExecutor(Generic[T, R]):
    """Create it in the process that uses it: threads don't survive a fork."""

    def __init__(
        self,
        name: str,
        work: Callable[[T], R],
        publish: Callable[[Done[T, R]], None],
        on_error: Callable[[Exception], None],
        timeout_s: float = TIMEOUT_S,
        most_waiting: int = MOST_WAITING,
        on_drop: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._publish = publish
        self._on_error = on_error
        self._timeout_s = timeout_s
        self._most_waiting = most_waiting
        self._on_drop = on_drop
        self._condition = threading.Condition()
        self._waiting: deque[_Task[T]] = deque()
        self._working: list[_Task[T]] = []
        self._counter: Counter[str] = Counter()
        self._start_at = 0.0
        self._standby_threads = 0  # threads waiting for the working one to time out
        self._open = True
        for number in range(THREADS):
            threading.Thread(target=self._run, name=f"{name} {number + 1}", daemon=True).start()

    def offer(self, item: T) -> None:
        """Queue an item without blocking; drop it if the queue is full or closed."""
        with self._condition:
            now = time.monotonic()
            self._drop_late(now)
            self._counter["offered"] += 1
            if not self._open or len(self._waiting) >= self._most_waiting:
                self._drop("full")
                return
            self._waiting.append(_Task(item, now + self._timeout_s))
            if len(self._waiting) == 1:
                self._start_at = now + _START_DELAY_S
                self._condition.notify()

    def counts(self) -> Counts:
        with self._condition:
            self._drop_late(time.monotonic())
            return Counts(**self._counter)

    def close(self) -> Counts:
        """Give queued tasks their remaining time, at most a second; drop the rest as late. No task starts after it."""
        deadline = time.monotonic() + _CLOSE_TIMEOUT_S
        with self._condition:
            self._open = False
            self._condition.notify_all()
            while Counts(**self._counter).in_flight and (now := time.monotonic()) < deadline:
                self._drop_late(now)
                self._condition.wait(0.01)
            self._drop_late(float("inf"))
            self._condition.notify_all()  # so that the threads exit
            return Counts(**self._counter)

    def _run(self) -> None:
        while task := self._next():
            self._run_task(task)

    def _next(self) -> _Task[T] | None:
        """Wait for the next task; None once closed."""
        with self._condition:
            while self._open or self._waiting:
                now = time.monotonic()
                self._drop_late(now)
                if not self._waiting:
                    self._condition.wait()
                    continue
                start_at = self._start_at if self._open else now
                begin_at = max([start_at, *(task.late_at for task in self._working)])
                if begin_at <= now:
                    task = self._waiting.popleft()
                    self._working.append(task)
                    if self._waiting and not self._standby_threads:
                        self._condition.notify()
                    return task
                self._standby_threads += 1
                self._condition.wait(begin_at - now)
                self._standby_threads -= 1
            return None

    def _run_task(self, task: _Task[T]) -> None:
        outcome: _Outcome = "failed"
        started = time.monotonic()
        try:
            result = self._work(task.item)
            ended = time.monotonic()
            counts = self._start_publishing(task)
            if counts:
                waited_s = started - (task.late_at - self._timeout_s)
                self._publish(Done(task.item, result, waited_s, ended - started, counts))
                outcome = "published"
        except Exception as error:  # noqa: BLE001 - it is counted and reported, and the next task may succeed
            self._on_error(error)
        finally:
            self._settle(task, outcome)

    def _start_publishing(self, task: _Task[T]) -> Counts | None:
        """Mark a task as publishing, so that it can no longer time out; return the counts, or None if it is late."""
        with self._condition:
            self._drop_late(time.monotonic())
            if task.stage == "counted":
                return None
            task.stage = "publishing"
            return Counts(**self._counter)

    def _settle(self, task: _Task[T], outcome: _Outcome) -> None:
        with self._condition:
            self._drop_late(time.monotonic())
            self._working.remove(task)
            if task.stage == "counted":
                return
            if outcome == "published":
                self._counter["published"] += 1
            else:
                self._drop(outcome)

    def _drop_late(self, now: float) -> None:
        while self._waiting and self._waiting[0].late_at <= now:
            self._waiting.popleft()
            self._drop("late")
        for task in self._working:
            if task.stage == "working" and task.late_at <= now:
                task.stage = "counted"
                self._drop("late")

    def _drop(self, reason: Literal["full", "late", "failed"]) -> None:
        self._counter[reason] += 1
        self._on_drop()
