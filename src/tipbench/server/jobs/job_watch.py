"""Manage jobs: start the ones that are next, stop the cancelled ones, and record how each ended."""

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
from tipbench.server.jobs.job_store import JobKind, JobStore, StoredJob
from tipbench.server.jobs.progress import Progress

_EXPERIMENT = "experiment "
SIMULATIONS = "simulations"  # each uses all cores
RESUMABLE_NOTE = "everything it stored is safe: run it again and it continues from there"  # for collections
_INTERRUPTED = 130
_REFUSED = 2
POLL_S = 0.3
_ERROR_PAUSE_S = 5.0
_STARTUP_S = 1.0  # until a started process can be found by its command line
_UNKNOWN_STARTUP_S = 10.0  # the same if the server was killed before it stored the process id
_log = logging.getLogger(__name__)


# Processes of jobs: started in their own sessions, found again by later servers, ended as a group.


class Group(NamedTuple):
    """The process group of a job that has at least one live process."""

    id: int
    root: int  # the ancestor of all other processes of the job
    supervised: bool  # its supervisor is alive, so the log is stored and the exit will be recorded


class Processes:
    """Starts jobs' processes and finds them again, including those that a previous server started."""

    def __init__(self) -> None:
        self._own: set[int] = set()  # children of this process, which has to reap them

    def start(self, folder: JobFolder, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the job's supervisor in its own session and return its process id. Raises OSError."""
        with open_private(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as log:
            process = start_process(
                module_command("tipbench.server.jobs.supervisor", str(folder.path), *command),
                stderr=log,  # so that a failure of the supervisor itself can be read
                environment={**environment, "PYTHONUNBUFFERED": "1"},  # keeps lines of stdout and stderr in order
            )
        process.returncode = 0  # watched by its id, by this server or the next, so Popen need not warn
        self._own.add(process.pid)
        return process.pid

    def find_group(self, folder: JobFolder, pid: int | None) -> Group | None:
        """Return the job's process group; None when none of its processes is alive.

        A process belongs to the job if its command line names the job's folder: a process id may have been reused, and
        a start time changes when the clock is set.
        """
        pids = folder.pids()
        supervisor = pid or pids.supervisor
        if supervisor and not self._has_ended(supervisor) and _has_argument(supervisor, str(folder.path)):
            return Group(supervisor, supervisor, supervised=True)
        if pids.child and _has_argument(pids.child, f"{folder.path}/"):
            with suppress(ProcessLookupError):
                return Group(os.getpgid(pids.child), pids.child, supervised=False)
        return None

    def _has_ended(self, pid: int) -> bool:
        if pid not in self._own or not os.waitpid(pid, os.WNOHANG)[0]:
            return False
        self._own.discard(pid)
        return True


def terminate_group(group: Group) -> None:
    signal_group(group.id, signal.SIGTERM)


def kill_group(group: Group) -> None:
    """Kill the group and all descendants: a judge's program has its own group, and nothing else would end it."""
    kill_descendants(group.root)
    signal_group(group.id, signal.SIGKILL)


def _has_argument(pid: int, prefix: str) -> bool:
    """Return whether an argument of the process's command line starts with this prefix."""
    try:
        return any(one.startswith(prefix) for one in psutil.Process(pid).cmdline())
    except psutil.Error:  # gone, a zombie, or another user's
        return False


# Resources that a job needs exclusively: jobs that share one run one after the other.


def engines_of(options: Options, settings: Settings) -> set[str]:
    """Return the names of the engines that a run will use, including its judge's."""
    return set(map(engine_name, options.model_names)) | judge_engines(options, settings)


def judge_engines(options: Options, settings: Settings) -> set[str]:
    """Return the name of the engine that the judge uses; nothing if the judge is not a model."""
    model = judge_model(options.judge, settings)
    return {engine_name(model)} if model else set()


def needs_of(options: Options, settings: Settings, used: set[str] | None = None) -> tuple[str, ...]:
    """Return what a job needs exclusively: its experiment, and those of its engines that load one model at a time.

    `used` are the engines if they are not all that the options name.
    """
    needs = [_EXPERIMENT + options.experiment]
    with open_engines(options, settings) as engines:
        for engine in map(engines.named, sorted(engines_of(options, settings) if used is None else used)):
            if engine.exclusive:
                where = "" if engine.address == IN_PROCESS else f" {endpoint(engine.address)}"
                needs.append(engine.name + where)
    return tuple(needs)


def what_it_waits_for(needs: Sequence[str], taken: Mapping[str, str]) -> str:
    """Describe the first need that another job holds; empty when all are free. `taken`: need → the holder's name."""
    for need in needs:
        if need in taken:
            return f"waits for {taken[need]}{_describe_need(need)}"
    return ""


def _describe_need(need: str) -> str:
    if need.startswith(_EXPERIMENT):
        return ", which writes to the same experiment"
    if need == SIMULATIONS:
        return ", because they run one at a time"
    engine, _, address = need.partition(" ")
    return f" at {address}" if address else f" on the {engine} engine"


# The result of a job, from what its processes left behind.


class Ending(NamedTuple):
    state: JobState
    exit_status: int | None
    message: str


def ending_of(
    ended: Exit | None, progress: Progress | None, cancelled: bool, killed_after_s: float | None, unfinished_note: str
) -> Ending:
    """Return the job's final state, exit status and message.

    `killed_after_s` is set if we killed the job because it did not end within that time after SIGTERM.
    `unfinished_note` says what remains of a job that did not finish.
    """
    if ended and ended.status in (0, 1) and progress and progress.phase == "done":
        return Ending("finished", ended.status, progress.message)
    killed = killed_after_s is not None
    status = ended.status if ended else -signal.SIGKILL if killed else None
    if cancelled:
        how = f"did not end within {killed_after_s:g} s and was killed" if killed else "ended when it was asked to"
        return Ending("cancelled", status, f"it {how}; {unfinished_note}")
    return Ending("failed", status, _failure_message(ended, progress, unfinished_note))


def _failure_message(ended: Exit | None, progress: Progress | None, unfinished_note: str) -> str:
    if ended is None:
        return f"its process ended without a message (it was probably killed); {unfinished_note}"
    if ended.status < 0:
        hint = " (was it out of memory?)" if ended.status == -signal.SIGKILL else ""
        return f"killed by signal {-ended.status}{hint}; {unfinished_note}"
    if ended.status == _INTERRUPTED:
        return f"interrupted by a signal; {unfinished_note}"
    if ended.status == _REFUSED and progress and progress.message:
        return progress.message
    return f"it ended with status {ended.status} before it was done; the end of its log says why"


class JobWatch:
    """A thread that manages jobs and sleeps while there are none."""

    def __init__(
        self,
        store: JobStore,
        folder_of: Callable[[str], JobFolder],
        kind: JobKind,
        home: Path,
        settings: Settings,
        clock: Callable[[], float],
        grace_s: float,
    ) -> None:
        self._store = store
        self._folder_of = folder_of
        self._kind = kind
        self._home = home
        self._settings = settings
        self._clock = clock
        self._grace_s = grace_s
        self._processes = Processes()
        self._finishing: set[str] = set()
        self._close_lock = threading.Lock()
        self._closed = False
        self._wakeup = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wakeup.set()

    def close(self) -> None:
        """Stop the thread. A job that is just being finished is left for the next server to finish."""
        with self._close_lock:
            self._closed = True
        self._wakeup.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            self._wakeup.clear()
            pause_s: float | None = _ERROR_PAUSE_S
            try:
                self._poll()
                self._remove_old()
                pause_s = POLL_S if self._store.live() else None
            except Exception:  # noqa: BLE001 - a full disk, a bug: the other jobs must still be managed
                _log.exception("checking the jobs failed; trying again")
            self._wakeup.wait(pause_s)

    def _poll(self) -> None:
        for stored in self._store.live():
            if stored.job.state == "running":
                self._poll_running(stored)
        taken: dict[str, str] = {}
        for stored in self._store.live():  # running ones first, then in the order of arrival
            if stored.job.state == "queued":
                waits_for = what_it_waits_for(stored.needs, taken)
                if not waits_for:
                    self._start_job(stored)
                elif waits_for != stored.job.message:
                    self._store.update(stored.job.id, "queued", message=waits_for)
            for need in stored.needs:
                taken.setdefault(need, self._kind.name(stored.job))

    def _start_job(self, stored: StoredJob) -> None:
        job, folder = stored.job, self._folder_of(stored.job.id)
        if not self._store.update(job.id, "queued", state="running", started_ms=self._now_ms(), message=""):
            return  # it was just cancelled
        try:
            command = self._kind.command(stored, folder)
            pid = self._processes.start(folder, command, self._settings.job_environment(self._home))
        except OSError as error:
            message = f"its process could not be started: {error}"
            self._store.update(job.id, "running", state="failed", ended_ms=self._now_ms(), message=message)
            return
        self._store.update(job.id, "running", pid=pid)

    def _poll_running(self, stored: StoredJob) -> None:
        if stored.job.id in self._finishing:
            return
        folder = self._folder_of(stored.job.id)
        group = self._processes.find_group(folder, stored.pid)
        if group is None:
            missing_s = self._since_s(stored.job.started_ms or 0)
            if folder.exit() or missing_s > (_STARTUP_S if stored.pid else _UNKNOWN_STARTUP_S):
                self._finishing.add(stored.job.id)
                threading.Thread(target=self._finish, args=(stored, folder), name="job's end", daemon=True).start()
        elif stored.job.cancelling or not group.supervised:
            # Without its supervisor a run fails at the next line that it prints, so end it cleanly.
            self._stop(stored, group)

    def _stop(self, stored: StoredJob, group: Group) -> None:
        """Terminate the job once, since a second signal would interrupt its cleanup; kill it after the grace period."""
        if stored.stopped_ms is None:
            self._store.update(stored.job.id, "running", stopped_ms=self._now_ms())
            terminate_group(group)
        elif self._since_s(stored.stopped_ms) > self._grace_s:
            self._store.update(stored.job.id, "running", killed=True)
            kill_group(group)

    def _finish(self, stored: StoredJob, folder: JobFolder) -> None:
        """Clean up and store the result. Runs in its own thread, so that an unresponsive engine delays no other job."""
        try:
            ended, progress = folder.exit(), folder.progress()
            killed_after_s = self._grace_s if stored.killed else None
            ending = ending_of(ended, progress, stored.job.cancelling, killed_after_s, self._kind.unfinished_note)
            leftover = self._kind.clean_up(stored, progress)
            with self._close_lock:
                if self._closed:
                    return
                self._store.update(
                    stored.job.id,
                    "running",
                    state=ending.state,
                    exit_status=ending.exit_status,
                    ended_ms=ended.ended_ms if ended else self._now_ms(),
                    message=ending.message + leftover,
                )
        finally:
            self._finishing.discard(stored.job.id)
            self._wakeup.set()

    def _remove_old(self) -> None:
        for stored in self._store.outdated():
            self._folder_of(stored.job.id).remove()
            self._store.remove(stored.job.id)

    def _since_s(self, then_ms: int) -> float:
        """Return the seconds since then; a guess if that is in the future, because the clock was set back."""
        return abs(self._now_ms() - then_ms) / 1000

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)
