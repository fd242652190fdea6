"""The processes of jobs: started on their own, found again by whoever comes later, ended as a group."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil

from tipbench.core.processes import kill_descendants, module_command, signal_group, start_process
from tipbench.server.jobs.job_folder import JobFolder, open_private


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
