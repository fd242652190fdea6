"""Sees to the jobs: begins those whose turn it is, asks those to end that shall, and notes how each ended."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from tipbench.bench.engines.catalog import engine_name, open_engines
from tipbench.bench.engines.interface import IN_PROCESS
from tipbench.bench.judge.judges.catalog import judge_model
from tipbench.bench.options import Options, endpoint
from tipbench.core.processes import kill_descendants, module_command, signal_group, start_process
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import JobState
from tipbench.server.jobs.job_folder import Exit, JobFolder, open_private
from tipbench.server.jobs.job_store import JobStore, StoredJob, Work
from tipbench.server.jobs.progress import Progress

_EXPERIMENT = "experiment "
SIMULATIONS = "simulations"  # each uses all cores
KEPT = "what it stored is kept: run it again and it goes on from there"  # of a collection
_INTERRUPTED = 130
_REFUSED = 2
POLL_S = 0.3
_AFTER_TROUBLE_S = 5.0
_APPEARING_S = 1.0  # until a process that was started can be found by its command line
_STARTED_UNSEEN_S = 10.0  # the same, where the server was killed before it could note whom it had started
_log = logging.getLogger(__name__)


# The processes of jobs: started on their own, found again by whoever comes later, ended as a group.


class Group(NamedTuple):
    """The process group of a job of which something still lives."""

    id: int
    root: int  # the process that all others of the job come from
    supervised: bool  # its supervisor lives, so that the log is kept and the end will be written down


class Processes:
    """Starts them, and finds them again, those too that a server before this one started."""

    def __init__(self) -> None:
        self._own: set[int] = set()  # children of this process: when they have ended, nobody else sees to them

    def start(self, folder: JobFolder, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Starts the job's supervisor in a session of its own; returns its process id. Raises OSError."""
        with open_private(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as log:
            process = start_process(
                module_command("tipbench.server.jobs.supervisor", str(folder.path), *command),
                stderr=log,  # where it breaks itself, somebody should be able to read why
                environment={**environment, "PYTHONUNBUFFERED": "1"},  # lines of stdout and stderr in their order
            )
        process.returncode = 0  # it is looked after by its id, by this server or the next: Popen need not miss it
        self._own.add(process.pid)
        return process.pid

    def living(self, folder: JobFolder, pid: int | None) -> Group | None:
        """None when nothing of the job lives.

        A process is the job's when its command line names the job's folder: a process id alone may belong to somebody
        else by now, and a start time moves when the clock is set.
        """
        pids = folder.pids()
        supervisor = pid or pids.supervisor
        if supervisor and not self._has_ended(supervisor) and _names(supervisor, str(folder.path)):
            return Group(supervisor, supervisor, supervised=True)
        if pids.child and _names(pids.child, f"{folder.path}/"):
            with suppress(ProcessLookupError):
                return Group(os.getpgid(pids.child), pids.child, supervised=False)
        return None

    def _has_ended(self, pid: int) -> bool:
        if pid not in self._own or not os.waitpid(pid, os.WNOHANG)[0]:
            return False
        self._own.discard(pid)
        return True


def ask_to_end(group: Group) -> None:
    signal_group(group.id, signal.SIGTERM)


def end_at_once(group: Group) -> None:
    """With all that it started: a judge's program has a group of its own, and nobody else is left to end it."""
    kill_descendants(group.root)
    signal_group(group.id, signal.SIGKILL)


def _names(pid: int, word: str) -> bool:
    """Whether a word of its command line begins so."""
    try:
        return any(one.startswith(word) for one in psutil.Process(pid).cmdline())
    except psutil.Error:  # gone, a zombie, or somebody else's
        return False


# What a job needs to itself: two that need the same run one after the other.


def engines_of(options: Options, settings: Settings) -> set[str]:
    """The names of the engines that a run will use, its judge's too."""
    judge = judge_model(options.judge, settings)
    return {engine_name(model) for model in (*options.model_names, *([judge] if judge else []))}


def needs_of(options: Options, settings: Settings) -> tuple[str, ...]:
    """The experiment, which one collection fills at a time, and the engines that load one model at a time."""
    needs = [_EXPERIMENT + options.experiment]
    with open_engines(options, settings) as engines:
        for engine in map(engines.named, sorted(engines_of(options, settings))):
            if engine.exclusive:
                where = "" if engine.address == IN_PROCESS else f" {endpoint(engine.address)}"
                needs.append(engine.name + where)
    return tuple(needs)


def what_it_waits_for(needs: Sequence[str], taken: Mapping[str, str]) -> str:
    """One sentence about the first need that another job has; nothing when all are free. `taken`: need → by what."""
    for need in needs:
        if need in taken:
            return f"waits for {taken[need]}{_place(need)}"
    return ""


def _place(need: str) -> str:
    if need.startswith(_EXPERIMENT):
        return ", which fills the same experiment"
    if need == SIMULATIONS:
        return ", since one runs at a time"
    engine, _, address = need.partition(" ")
    return f" at {address}" if address else f" on the {engine} engine"


# What came of a job, from what its processes left.


class Ending(NamedTuple):
    state: JobState
    exit_status: int | None
    message: str


def ending_of(
    ended: Exit | None, progress: Progress | None, cancelled: bool, killed_after_s: float | None, kept: str
) -> Ending:
    """`killed_after_s`: by us, because it did not end in that time when it was asked to. `kept`: what is left of it."""
    if ended and ended.status in (0, 1) and progress and progress.phase == "done":
        return Ending("finished", ended.status, progress.message)
    killed = killed_after_s is not None
    status = ended.status if ended else -signal.SIGKILL if killed else None
    if cancelled:
        how = f"did not end within {killed_after_s:g} s and was killed" if killed else "ended when it was asked to"
        return Ending("cancelled", status, f"it {how}; {kept}")
    return Ending("failed", status, _why(ended, progress, kept))


def _why(ended: Exit | None, progress: Progress | None, kept: str) -> str:
    if ended is None:
        return f"its process ended without a word (the machine or somebody killed it); {kept}"
    if ended.status < 0:
        asked = " (was it out of memory?)" if ended.status == -signal.SIGKILL else ""
        return f"killed by signal {-ended.status}{asked}; {kept}"
    if ended.status == _INTERRUPTED:
        return f"interrupted by a signal; {kept}"
    if ended.status == _REFUSED and progress and progress.message:
        return progress.message
    return f"it ended with status {ended.status} before it was done; the end of its log says why"


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
