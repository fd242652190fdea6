"""Runs on this machine: each job is a process of its own, and goes on when the server dies."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tipbench.errors import TurnTaken
from tipbench.options import Options
from tipbench.progress import Progress
from tipbench.runners.credentials import refuse_credentials
from tipbench.runners.interface import Job, Runner
from tipbench.runners.job_folder import JobFolder
from tipbench.runners.job_store import JobStore
from tipbench.runners.job_watch import JobWatch
from tipbench.runners.needs import needs_of
from tipbench.settings import Settings
from tipbench.suites.load import load_suite
from tipbench.turns import turn

GRACE_S = 30.0


def open_runner(
    address: str,  # noqa: ARG001 - one signature for all
    home: Path,
    settings: Settings,
    clock: Callable[[], float],
    new_id: Callable[[], str],
) -> Runner:
    return SubprocessRunner(home, settings, clock, new_id)


class SubprocessRunner:
    """One for each home; what another one before it started is found again."""

    is_here = True

    def __init__(
        self,
        home: Path,
        settings: Settings,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        grace_s: float = GRACE_S,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._folders = home.absolute() / "server" / "jobs"
        self._folders.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folders.mkdir(mode=0o700, exist_ok=True)
        with ExitStack() as stack:
            self._take_turn(stack, home)
            self._store = JobStore(self._folders.parent / "jobs.db")
            stack.callback(self._store.close)
            self._remove_unknown()
            self._watch = JobWatch(self._store, self._folder, home.absolute(), settings, clock, grace_s)
            self._watch.start()
            stack.callback(self._watch.close)
            self._open = stack.pop_all()

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        refuse_credentials(options)
        options = load_suite(options.suite).fit(options)
        config = options.model_dump(mode="json")
        job = Job(self._new_id(), "queued", config, round(self._clock() * 1000))
        self._folder(job.id).create(config)
        self._store.add(job, retry_failed, fresh, needs_of(options, self._settings))
        self._watch.wake()
        return self.job(job.id)

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        return [stored.job for stored in self._store.newest(limit, before_ms)]

    def job(self, job_id: str) -> Job:
        return self._store.get(job_id).job

    def progress(self, job_id: str) -> Progress:
        job = self.job(job_id)
        if job.state == "queued":
            return Progress(phase="waiting", message=job.message, experiment=job.experiment)
        told = self._folder(job_id).progress() or Progress(experiment=job.experiment)
        return replace(told, message=job.message, eta_s=None) if job.ended else told

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        self.job(job_id)
        return self._folder(job_id).log_end(last_bytes)

    def cancel(self, job_id: str) -> Job:
        now_ms = round(self._clock() * 1000)
        before = "cancelled before it began"
        if not self._store.update(job_id, "queued", state="cancelled", ended_ms=now_ms, message=before):
            self._store.update(job_id, "running", cancelling=True)
        self._watch.wake()
        return self.job(job_id)

    def close(self) -> None:
        self._open.close()

    def _folder(self, job_id: str) -> JobFolder:
        return JobFolder(self._folders / job_id)

    def _take_turn(self, stack: ExitStack, home: Path) -> None:
        try:
            stack.enter_context(turn(self._folders.parent / "lock", "taken", wait=False, say=lambda _text: None))
        except TurnTaken:
            raise TurnTaken(
                f"another server looks after the jobs in {home}; stop it, or set TIPBENCH_HOME to another folder"
            ) from None

    def _remove_unknown(self) -> None:
        """Folders of jobs that were never taken, because the server was killed in between."""
        known = self._store.ids()
        for path in self._folders.iterdir():
            folder = self._folder(path.name)
            if path.name not in known and not folder.has_begun:  # else somebody has moved the database away
                folder.remove()
