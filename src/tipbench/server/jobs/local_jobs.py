"""Jobs of one kind on this machine: stored in a folder and a database, managed by one server at a time."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tipbench.core.errors import LockTaken
from tipbench.core.files import make_private_folder
from tipbench.core.locks import exclusive
from tipbench.core.paths import server_folder
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import JobKind, JobStore
from tipbench.server.jobs.job_watch import JobWatch
from tipbench.server.jobs.progress import Progress

GRACE_S = 30.0
_ALL = 2**31


class JobReader:
    """Reads the jobs of one kind from their folder and database, also while a server manages them."""

    def __init__(self, home: Path, name: str) -> None:
        """`name` is a plural noun: it names the folder and the database."""
        self._folders = server_folder(home.absolute()) / name
        make_private_folder(self._folders)
        self._store = JobStore(self._folders.parent / f"{name}.db", name.removesuffix("s"))

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        """Return jobs, newest first."""
        return [stored.job for stored in self._store.newest(limit, before_ms)]

    def live(self) -> list[Job]:
        """Return the jobs that are running or queued."""
        return [stored.job for stored in self._store.live()]

    def job(self, job_id: str) -> Job:
        """Return the job; raise UnknownJob if there is none."""
        return self._store.get(job_id).job

    def progress(self, job_id: str) -> Progress:
        """Return the job's progress; after its end, the last that it reported."""
        job = self.job(job_id)
        default = Progress(experiment=job.config.get("experiment", ""))  # simulations have none
        if job.state == "queued":
            return replace(default, phase="waiting", message=job.message)
        progress = self.folder(job_id).progress() or default
        return replace(progress, message=job.message, eta_s=None) if job.ended else progress

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        """Return the end of the job's output, starting at the beginning of a line and made printable."""
        self.job(job_id)
        return self.folder(job_id).log_end(last_bytes)

    def logs_before(self, ended_ms: int) -> list[Path]:
        """Return the log files of jobs that ended before this moment."""
        ended = [job.id for job in self.jobs(_ALL) if job.ended_ms is not None and job.ended_ms < ended_ms]
        return [path for job_id in ended for path in self.folder(job_id).logs()]

    def folder(self, job_id: str) -> JobFolder:
        return JobFolder(self._folders / job_id)

    def close(self) -> None:
        self._store.close()


class LocalJobs(JobReader):
    """The jobs of one kind, including those that a previous server started. All methods are thread-safe."""

    def __init__(
        self,
        home: Path,
        name: str,
        lock: str,
        kind: JobKind,
        settings: Settings,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        grace_s: float,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        with ExitStack() as stack:
            _lock(stack, home, name, lock)
            super().__init__(home, name)
            stack.callback(self._store.close)
            self._remove_unknown()
            self._watch = JobWatch(self._store, self.folder, kind, home.absolute(), settings, clock, grace_s)
            self._watch.start()
            stack.callback(self._watch.close)
            self._resources = stack.pop_all()

    def add(
        self, config: Mapping[str, Any], needs: tuple[str, ...], retry_failed: bool = False, fresh: bool = False
    ) -> Job:
        job = Job(self._new_id(), "queued", config, round(self._clock() * 1000))
        self.folder(job.id).create(config)
        self._store.add(job, retry_failed, fresh, needs)
        self._watch.wake()
        return self.job(job.id)

    def cancel(self, job_id: str) -> Job:
        """Request the job's cancellation; a job that has ended is left unchanged."""
        now_ms = round(self._clock() * 1000)
        message = "cancelled before it began"
        if not self._store.update(job_id, "queued", state="cancelled", ended_ms=now_ms, message=message):
            self._store.update(job_id, "running", cancelling=True)
        self._watch.wake()
        return self.job(job_id)

    def close(self) -> None:
        """Stop watching jobs. Running jobs continue."""
        self._resources.close()

    def _remove_unknown(self) -> None:
        """Remove folders of jobs that were never stored because the server was killed in between."""
        known = self._store.ids()
        for path in self._folders.iterdir():
            folder = self.folder(path.name)
            if path.name not in known and not folder.has_begun:  # if it has begun, the database was moved away
                folder.remove()


def _lock(stack: ExitStack, home: Path, name: str, lock: str) -> None:
    """Hold the lock of whoever manages these jobs; raise LockTaken if another process does."""
    folder = server_folder(home.absolute())
    make_private_folder(folder)
    try:
        stack.enter_context(exclusive(folder / lock, "taken", wait=False, notify=lambda _text: None))
    except LockTaken:
        raise LockTaken(
            f"another server is running the {name} in {home}; stop it, or set TIPBENCH_HOME to another folder"
        ) from None
