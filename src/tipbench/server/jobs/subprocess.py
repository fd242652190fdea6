"""Runs on this machine: each job is a process of its own, and goes on when the server dies."""

import logging
from collections.abc import Callable
from pathlib import Path

from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.residency import unload_left
from tipbench.bench.options import Options, make_options
from tipbench.bench.suites.load import load_suite
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.server.jobs.interface import Job, Runner
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.job_watch import KEPT, engines_of, needs_of
from tipbench.server.jobs.local_jobs import GRACE_S, LocalJobs
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import refuse_credentials

_NOTHING_LOADED = ("starting", "waiting")

_log = logging.getLogger(__name__)


# Collections: `tipbench run`, which may leave a model in memory.


class BenchWork:
    kept = KEPT

    def __init__(self, home: Path, settings: Settings) -> None:
        self._home = home
        self._settings = settings

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        return folder.command(stored.job.config.get("judge"), stored.retry_failed, stored.fresh)

    def name(self, job: Job) -> str:
        return f"job {job.id} ({printable(job.experiment, 80)})"

    def tidied(self, stored: StoredJob, progress: Progress | None) -> str:
        """Whatever ended it, no model stays in memory; words for its message when one does."""
        if progress is None or progress.phase in _NOTHING_LOADED:
            return ""
        try:
            options = make_options(stored.job.config)
            with open_engines(options, self._settings) as engines:
                for name in sorted(engines_of(options, self._settings)):
                    unload_left(engines.named(name), self._home, _log.info)
        except Exception as error:  # noqa: BLE001 - the job has ended all the same, and its message tells what is wrong
            return f"; a model that it used may still be loaded: {printable(str(error), 300)}"
        return ""


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
