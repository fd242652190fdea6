"""Runs on this machine: each job is a process of its own, and goes on when the server dies."""

from collections.abc import Callable
from pathlib import Path

from tipbench.bench.options import Options
from tipbench.bench.suites.load import load_suite
from tipbench.core.settings import Settings
from tipbench.server.jobs.bench_work import BenchWork
from tipbench.server.jobs.credentials import refuse_credentials
from tipbench.server.jobs.interface import Job, Runner
from tipbench.server.jobs.local_jobs import GRACE_S, LocalJobs
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.resource_locks import needs_of


def open_runner(
    address: str,  # noqa: ARG001 - one signature for all
    home: Path,
    settings: Settings,
    clock: Callable[[], float],
    new_id: Callable[[], str],
) -> Runner:
    return SubprocessRunner(home, settings, clock, new_id)


class SubprocessRunner:
    """One for each home."""

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
        work = BenchWork(home.absolute(), settings)
        self._jobs = LocalJobs(home, "jobs", "lock", work, settings, clock, new_id, grace_s)

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        refuse_credentials(options)
        options = load_suite(options.suite).fit(options)
        needs = needs_of(options, self._settings)
        return self._jobs.add(options.model_dump(mode="json"), needs, retry_failed, fresh)

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        return self._jobs.jobs(limit, before_ms)

    def job(self, job_id: str) -> Job:
        return self._jobs.job(job_id)

    def progress(self, job_id: str) -> Progress:
        return self._jobs.progress(job_id, Progress(experiment=self.job(job_id).experiment))

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        return self._jobs.log(job_id, last_bytes)

    def cancel(self, job_id: str) -> Job:
        return self._jobs.cancel(job_id)

    def close(self) -> None:
        self._jobs.close()
