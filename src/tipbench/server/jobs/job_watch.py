"""Sees to the jobs: begins those whose turn it is, asks those to end that shall, and notes how each ended."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from tipbench.core.settings import Settings
from tipbench.server.jobs.exit_reason import ending_of
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_kind import Work
from tipbench.server.jobs.job_store import JobStore, StoredJob
from tipbench.server.jobs.processes import Group, Processes, ask_to_end, end_at_once
from tipbench.server.jobs.resource_locks import what_it_waits_for

POLL_S = 0.3
_AFTER_TROUBLE_S = 5.0
_APPEARING_S = 1.0  # until a process that was started can be found by its command line
_STARTED_UNSEEN_S = 10.0  # the same, where the server was killed before it could note whom it had started

_log = logging.getLogger(__name__)


class JobWatch:
    """A thread that sleeps while there is nothing to see to."""

    def __init__(
        self,
        store: JobStore,
        folder_of: Callable[[str], JobFolder],
        work: Work,
        home: Path,
        settings: Settings,
        clock: Callable[[], float],
        grace_s: float,
    ) -> None:
        self._store = store
        self._folder_of = folder_of
        self._work = work
        self._home = home
        self._settings = settings
        self._clock = clock
        self._grace_s = grace_s
        self._processes = Processes()
        self._ending: set[str] = set()
        self._closing = threading.Lock()
        self._closed = False
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._news.set()

    def close(self) -> None:
        """What is just being ended stays to be ended by the next one."""
        with self._closing:
            self._closed = True
        self._news.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            self._news.clear()
            pause_s: float | None = _AFTER_TROUBLE_S
            try:
                self._look_after_all()
                self._remove_old()
                pause_s = POLL_S if self._store.live() else None
            except Exception:  # noqa: BLE001 - a full disk, a bug: somebody must go on looking after the others
                _log.exception("looking after the jobs failed; trying again")
            self._news.wait(pause_s)

    def _look_after_all(self) -> None:
        for stored in self._store.live():
            if stored.job.state == "running":
                self._look_after(stored)
        taken: dict[str, str] = {}
        for stored in self._store.live():  # running ones first, then in the order in which they came
            if stored.job.state == "queued":
                waits_for = what_it_waits_for(stored.needs, taken)
                if not waits_for:
                    self._begin(stored)
                elif waits_for != stored.job.message:
                    self._store.update(stored.job.id, "queued", message=waits_for)
            for need in stored.needs:
                taken.setdefault(need, self._work.name(stored.job))

    def _begin(self, stored: StoredJob) -> None:
        job, folder = stored.job, self._folder_of(stored.job.id)
        if not self._store.update(job.id, "queued", state="running", started_ms=self._now_ms(), message=""):
            return  # cancelled a moment ago
        try:
            command = self._work.command(stored, folder)
            pid = self._processes.start(folder, command, self._settings.for_a_job(self._home))
        except OSError as error:
            message = f"its process could not be started: {error}"
            self._store.update(job.id, "running", state="failed", ended_ms=self._now_ms(), message=message)
            return
        self._store.update(job.id, "running", pid=pid)

    def _look_after(self, stored: StoredJob) -> None:
        if stored.job.id in self._ending:
            return
        folder = self._folder_of(stored.job.id)
        group = self._processes.living(folder, stored.pid)
        if group is None:
            unseen_s = self._since_s(stored.job.started_ms or 0)
            if folder.exit() or unseen_s > (_APPEARING_S if stored.pid else _STARTED_UNSEEN_S):
                self._ending.add(stored.job.id)
                threading.Thread(target=self._end, args=(stored, folder), name="job's end", daemon=True).start()
        elif stored.job.cancelling or not group.supervised:
            # Without its supervisor a run breaks at the next line that it prints: better that it ends tidily.
            self._stop(stored, group)

    def _stop(self, stored: StoredJob, group: Group) -> None:
        """Asks once, since a second signal would cut the tidying short; then ends it."""
        if stored.stopped_ms is None:
            self._store.update(stored.job.id, "running", stopped_ms=self._now_ms())
            ask_to_end(group)
        elif self._since_s(stored.stopped_ms) > self._grace_s:
            self._store.update(stored.job.id, "running", killed=True)
            end_at_once(group)

    def _end(self, stored: StoredJob, folder: JobFolder) -> None:
        """In a thread of its own: an engine that does not answer keeps nobody else waiting."""
        try:
            ended, progress = folder.exit(), folder.progress()
            killed_after_s = self._grace_s if stored.killed else None
            ending = ending_of(ended, progress, stored.job.cancelling, killed_after_s, self._work.kept)
            left = self._work.tidied(stored, progress)
            with self._closing:
                if self._closed:
                    return
                self._store.update(
                    stored.job.id,
                    "running",
                    state=ending.state,
                    exit_status=ending.exit_status,
                    ended_ms=ended.ended_ms if ended else self._now_ms(),
                    message=ending.message + left,
                )
        finally:
            self._ending.discard(stored.job.id)
            self._news.set()

    def _remove_old(self) -> None:
        for stored in self._store.outdated():
            self._folder_of(stored.job.id).remove()
            self._store.remove(stored.job.id)

    def _since_s(self, then_ms: int) -> float:
        """A moment that is still to come was noted before the clock was set back: nobody knows how long ago."""
        return abs(self._now_ms() - then_ms) / 1000

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)
