"""Marks on an experiment, by which a reader knows with one request whether anything was written since its last look.

Two kinds of tags on the experiment. `tipbench.writing:ID` stands there from before a writer's first write until after
its last one, each writer with an ID of its own. `tipbench.written` holds a value that nobody ever used before; every
writer sets a new one after its last write and before it takes its `writing` tag away.

**Why an unchanged mark means unchanged runs.** Say that a reader found no `writing` tag and the value V before it read
the runs, the same again afterwards, and the same again today. A write in between would have happened while its
writer's `writing` tag stood. That tag was not there before the reading, so it was set later; it is not there today, so
it was taken away; and before that the writer set a new value, which is not V. So there was no such write. Tags come in
one answer of the server, so nobody sees half of a change. It does not matter how many write at once, or in which
order they end: each has a tag of its own, and whichever value stands last is a new one.

**When a writer does not come to its end.** One that is killed leaves its `writing` tag, and as long as it stands nobody
trusts or keeps a look: slower, never wrong. A writer with a request that got no answer, which the server may still
carry out, leaves it on purpose. So that such tags don't stand for ever, `writing` is held for a minute only: a writer
that wants to write later than that sets its tag anew, to a new value, before. A reader that has seen one and the same
value for half an hour by its own clock knows that whoever set it is gone or will set it anew, and takes it away, with a
new `written` before. (A process that stands still for half an hour between setting the tag and sending the request
would slip through, until its next request; nothing on our side of an HTTP request can help that.)

What is written past tipbench, in MLflow's pages or by a version without marks, leaves no mark.
"""

import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tipbench.bench.tracking.interface import Experiment, MlflowApi
from tipbench.core.errors import TrackingError, TrackingUnreachable

WRITTEN = "tipbench.written"
WRITING = "tipbench.writing:"
HELD_S = 60.0  # how long a writer may write after it has set its tag
ABANDONED_S = 1_800.0  # when a tag that was not set anew belongs to nobody; far longer than any request


def state(experiment: Experiment) -> str | None:
    """What stays the same as long as nothing is written; None while somebody writes, or where nobody left a mark."""
    return None if writers(experiment) else experiment.tags.get(WRITTEN)


def writers(experiment: Experiment) -> dict[str, str]:
    """The tags of those who write, or did not come to their end."""
    return {key: value for key, value in experiment.tags.items() if key.startswith(WRITING)}


@dataclass
class _Tag:
    key: str
    set_at: tuple[float, float] | None = None  # by two clocks: one may be set, the other stands still in a sleep
    in_doubt: bool = False

    @property
    def holds(self) -> bool:
        if self.set_at is None:
            return False
        return all(0 <= now - then < HELD_S for now, then in zip(_now(), self.set_at, strict=True))


class Marks:
    """The writer's side. Whatever is written is written within `writing`; a `session` makes one of many writes."""

    def __init__(self, api: MlflowApi) -> None:
        self._api = api
        self._lock = threading.Lock()  # never held during a request
        self._sessions = 0
        self._tags: dict[str, _Tag] = {}

    @contextmanager
    def session(self) -> Iterator[None]:
        """Marks are set with the first write in the block, and taken away at its end; sessions in sessions are one."""
        with self._lock:
            self._sessions += 1
        try:
            yield
        finally:
            with self._lock:
                self._sessions -= 1
                ended = {} if self._sessions else self._tags
                if ended:
                    self._tags = {}
            for experiment_id, tag in ended.items():
                if tag.set_at and not tag.in_doubt:
                    self._end(experiment_id, [tag.key])

    @contextmanager
    def writing(self, experiment_id: str) -> Iterator[None]:
        with self.session():
            with self._lock:
                tag = self._tags.setdefault(experiment_id, _Tag(f"{WRITING}{uuid.uuid4().hex}"))
            if not tag.holds:
                set_at = _now()
                self._api.tag_experiment(experiment_id, tag.key, uuid.uuid4().hex)
                tag.set_at = set_at
            try:
                yield
            except BaseException as error:
                answered = isinstance(error, TrackingError) and not isinstance(error, TrackingUnreachable)
                tag.in_doubt |= self._api.is_shared and not answered
                raise

    def take_away(self, experiment: Experiment, keys: Iterable[str]) -> None:
        """The tags of writers that are gone."""
        self._end(experiment.id, keys)

    def _end(self, experiment_id: str, keys: Iterable[str]) -> None:
        """Where the server does not let us, the tags stay: readers read everything until somebody else may."""
        with suppress(TrackingError):
            self._api.tag_experiment(experiment_id, WRITTEN, uuid.uuid4().hex)
            for key in keys:
                self._api.untag_experiment(experiment_id, key)


def _now() -> tuple[float, float]:
    return time.monotonic(), time.time()
