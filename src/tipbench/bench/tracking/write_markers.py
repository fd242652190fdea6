"""Write markers on an experiment: with one request, a reader knows whether anything was written since its snapshot.

There are two kinds of tags on the experiment. `tipbench.writing:ID` exists from before a writer's first write until
after its last one; each writer has its own ID. `tipbench.written` holds a value that was never used before; every
writer sets a new one after its last write and before it removes its `writing` tag.

**Why an unchanged marker means unchanged runs.** Suppose that a reader found no `writing` tag and the value V before it
read the runs, again afterwards, and again today. A write in between would have happened while its writer's `writing`
tag existed. That tag did not exist before the read, so it was set later; it does not exist today, so it was removed;
and before that the writer set a new value, which is not V. So there was no such write. The server returns all tags in
one response, so nobody sees half of a change. It does not matter how many processes write at once, or in which order
they finish: each has its own tag, and whichever value is set last is a new one.

**When a writer does not finish.** A writer that is killed leaves its `writing` tag, and while that exists nobody trusts
or caches a snapshot: slower, never wrong. A writer whose request got no response, so that the server may still execute
it, leaves the tag on purpose. So that such tags don't remain forever, a `writing` tag is a lease of one minute: to
write later than that, the writer first sets its tag again, to a new value. A reader that has seen the same value for
half an hour by its own clock knows that its writer is gone or will set the tag again, and removes it, after setting a
new `written`. (A process that is suspended for half an hour between setting the tag and sending its request would go
unnoticed until its next request; nothing on the client's side of an HTTP request can prevent that.)

Writes that bypass tipbench, in MLflow's pages or by a version without markers, set no marker.
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
LEASE_S = 60.0  # how long a writer may write after setting its tag
ABANDONED_S = 1_800.0  # after this time, a tag that was not renewed is abandoned; far longer than any request


def marker_state(experiment: Experiment) -> str | None:
    """Return a value that is stable while nothing is written; None while somebody writes, or if nobody set a marker."""
    return None if writers(experiment) else experiment.tags.get(WRITTEN)


def writers(experiment: Experiment) -> dict[str, str]:
    """Return the tags of writers that are active, or did not finish."""
    return {key: value for key, value in experiment.tags.items() if key.startswith(WRITING)}


@dataclass
class _Tag:
    key: str
    set_at: tuple[float, float] | None = None  # by two clocks: one may be adjusted, the other stops during suspend
    in_doubt: bool = False

    @property
    def is_valid(self) -> bool:
        if self.set_at is None:
            return False
        return all(0 <= now - then < LEASE_S for now, then in zip(_now(), self.set_at, strict=True))


class WriteMarkers:
    """The writer's side. Every write happens within `writing`; a `session` shares one marker among many writes."""

    def __init__(self, api: MlflowApi) -> None:
        self._api = api
        self._lock = threading.Lock()  # never held during a request
        self._sessions = 0
        self._tags: dict[str, _Tag] = {}

    @contextmanager
    def session(self) -> Iterator[None]:
        """Set markers with the first write in the block, remove them at its end; nested sessions join the outer one."""
        with self._lock:
            self._sessions += 1
        try:
            yield
        finally:
            with self._lock:
                self._sessions -= 1
                finished = {} if self._sessions else self._tags
                if finished:
                    self._tags = {}
            for experiment_id, tag in finished.items():
                if tag.set_at and not tag.in_doubt:
                    self._end(experiment_id, [tag.key])

    @contextmanager
    def writing(self, experiment_id: str) -> Iterator[None]:
        with self.session():
            with self._lock:
                tag = self._tags.setdefault(experiment_id, _Tag(f"{WRITING}{uuid.uuid4().hex}"))
            if not tag.is_valid:
                set_at = _now()
                self._api.tag_experiment(experiment_id, tag.key, uuid.uuid4().hex)
                tag.set_at = set_at
            try:
                yield
            except BaseException as error:
                answered = isinstance(error, TrackingError) and not isinstance(error, TrackingUnreachable)
                tag.in_doubt |= self._api.is_shared and not answered
                raise

    def remove(self, experiment: Experiment, keys: Iterable[str]) -> None:
        """Remove the tags of writers that are gone."""
        self._end(experiment.id, keys)

    def _end(self, experiment_id: str, keys: Iterable[str]) -> None:
        """Set a new `written` value and remove the tags.

        If the server refuses, the tags remain, and readers don't use caches until somebody else removes them.
        """
        with suppress(TrackingError):
            self._api.tag_experiment(experiment_id, WRITTEN, uuid.uuid4().hex)
            for key in keys:
                self._api.untag_experiment(experiment_id, key)


def _now() -> tuple[float, float]:
    return time.monotonic(), time.time()
