"""Work that is done aside, in time or not at all: whoever brings it never waits for it.

One thread works at a time. A thread can't be ended, so one that is over its time is left alone with what it does, and
another takes over; once all of them are stuck, everything is dropped until one comes back. What comes back too late is
dropped too. Nothing is lost without being counted.

After a pause the work begins a moment later: threads share the interpreter, and whoever brought it has an answer to
send first. What comes in that moment is done in one go.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

LONGEST_S = 0.2  # from offering to publishing
MOST_WAITING = 100
THREADS = 2  # so many can be stuck: each that computes for ever takes its share of the interpreter for ever
_REST_S = 0.02
_CLOSING_S = 1.0
T = TypeVar("T")
R = TypeVar("R")
_End = Literal["published", "late", "failed"]


@dataclass(frozen=True)
class Counts:
    """What became of all that was offered: at any moment it was published, dropped, or is in flight."""

    offered: int = 0
    published: int = 0
    full: int = 0  # dropped: too many waited already
    late: int = 0  # dropped: not done in its time
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
    """A result in time, for whoever publishes it."""

    item: T
    result: R
    waited_s: float
    took_s: float
    counts: Counts  # it is in flight yet


class _Task(Generic[T]):
    def __init__(self, item: T, late_at: float) -> None:
        self.item = item
        self.late_at = late_at
        self.stage: Literal["working", "publishing", "counted"] = "working"


class BackgroundExecutor(Generic[T, R]):
    """To be made in the process that uses it: threads don't go along when a process forks."""

    def __init__(
        self,
        name: str,
        work: Callable[[T], R],
        publish: Callable[[Done[T, R]], None],
        complain: Callable[[Exception], None],
        longest_s: float = LONGEST_S,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._work = work
        self._publish = publish
        self._complain = complain
        self._longest_s = longest_s
        self._most_waiting = most_waiting
        self._change = threading.Condition()
        self._waiting: deque[_Task[T]] = deque()
        self._working: list[_Task[T]] = []
        self._tally: Counter[str] = Counter()
        self._rest_until = 0.0
        self._standing_by = 0  # threads that look again when the one at work is over its time
        self._open = True
        for number in range(THREADS):
            threading.Thread(target=self._run, name=f"{name} {number + 1}", daemon=True).start()

    def offer(self, item: T) -> None:
        """Returns at once; what can't be taken is dropped."""
        with self._change:
            now = time.monotonic()
            self._drop_late(now)
            self._tally["offered"] += 1
            if not self._open or len(self._waiting) >= self._most_waiting:
                self._tally["full"] += 1
                return
            self._waiting.append(_Task(item, now + self._longest_s))
            if len(self._waiting) == 1:
                self._rest_until = now + _REST_S
                self._change.notify()

    def counts(self) -> Counts:
        with self._change:
            self._drop_late(time.monotonic())
            return Counts(**self._tally)

    def close(self) -> Counts:
        """What waits has its time, and a second at most; the rest is late. No thread begins anything after this."""
        end = time.monotonic() + _CLOSING_S
        with self._change:
            self._open = False
            self._change.notify_all()
            while Counts(**self._tally).in_flight and (now := time.monotonic()) < end:
                self._drop_late(now)
                self._change.wait(0.01)
            self._drop_late(float("inf"))
            self._change.notify_all()  # for the threads to end
            return Counts(**self._tally)

    def _run(self) -> None:
        while task := self._next():
            self._do(task)

    def _next(self) -> _Task[T] | None:
        """None: it is closed."""
        with self._change:
            while self._open or self._waiting:
                now = time.monotonic()
                self._drop_late(now)
                if not self._waiting:
                    self._change.wait()
                    continue
                rest_until = self._rest_until if self._open else now
                begin_at = max([rest_until, *(task.late_at for task in self._working)])
                if begin_at <= now:
                    task = self._waiting.popleft()
                    self._working.append(task)
                    if self._waiting and not self._standing_by:
                        self._change.notify()
                    return task
                self._standing_by += 1
                self._change.wait(begin_at - now)
                self._standing_by -= 1
            return None

    def _do(self, task: _Task[T]) -> None:
        end: _End = "failed"
        begun = time.monotonic()
        try:
            result = self._work(task.item)
            ended = time.monotonic()
            counts = self._in_time(task)
            if counts:
                waited_s = begun - (task.late_at - self._longest_s)
                self._publish(Done(task.item, result, waited_s, ended - begun, counts))
                end = "published"
        except Exception as error:  # noqa: BLE001 - it is counted and told, and the next one may do better
            self._complain(error)
        finally:
            self._settle(task, end)

    def _in_time(self, task: _Task[T]) -> Counts | None:
        """Whether it may be published; from then on it can't become late any more."""
        with self._change:
            self._drop_late(time.monotonic())
            if task.stage == "counted":
                return None
            task.stage = "publishing"
            return Counts(**self._tally)

    def _settle(self, task: _Task[T], end: _End) -> None:
        with self._change:
            self._drop_late(time.monotonic())
            self._working.remove(task)
            if task.stage != "counted":
                self._tally[end] += 1

    def _drop_late(self, now: float) -> None:
        while self._waiting and self._waiting[0].late_at <= now:
            self._waiting.popleft()
            self._tally["late"] += 1
        for task in self._working:
            if task.stage == "working" and task.late_at <= now:
                task.stage = "counted"
                self._tally["late"] += 1
