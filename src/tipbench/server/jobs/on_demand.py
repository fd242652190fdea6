"""Jobs of this machine for a program beside the server: read at any time, watched only while nobody else does."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tipbench.bench.options import Options
from tipbench.core.errors import Conflict, LockTaken
from tipbench.core.settings import Settings
from tipbench.server.jobs.catalog import LOCAL, open_runner
from tipbench.server.jobs.interface import Job, Runner
from tipbench.server.jobs.local_jobs import JobReader
from tipbench.server.jobs.progress import Progress

_SERVED = (
    "a 'tipbench serve' of this home starts and ends its jobs, so this connection can't; use that server's page "
    "Experiments, or connect to its address with /mcp at the end and the admin token"
)


def open_runner_on_demand(
    address: str, home: Path, settings: Settings, clock: Callable[[], float], new_id: Callable[[], str]
) -> Runner:
    """Open the runner that TIPBENCH_RUNNER names; the local one takes the jobs over only when it has to."""

    def open_it() -> Runner:
        return open_runner(address, home, settings, clock, new_id)

    return OnDemandRunner(home, open_it) if settings.get("TIPBENCH_RUNNER") == LOCAL else open_it()


class OnDemandRunner:
    """The local runner, open only while there is a job to watch; the rest of the time a server of this home may start.

    Jobs are looked after whenever somebody asks about them: those that nobody watches are taken over.
    """

    is_local = True

    def __init__(self, home: Path, open_it: Callable[[], Runner]) -> None:
        self._reader = JobReader(home, "jobs")
        self._open = open_it
        self._lock = threading.Lock()
        self._runner: Runner | None = None

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        """Accept a run; raise Conflict if a server watches the jobs."""
        with self._lock:
            return self._opened().start(options, retry_failed, fresh)

    def judge(self, options: Options) -> Job:
        """Accept a job that runs a judge; raise Conflict if a server manages the jobs."""
        return self._opened().judge(options)

    def publish(self, options: Options) -> Job:
        """Accept a job that publishes an experiment; raise Conflict if a server manages the jobs."""
        return self._opened().publish(options)

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        self._look_after()
        return self._reader.jobs(limit, before_ms)

    def job(self, job_id: str) -> Job:
        self._look_after()
        return self._reader.job(job_id)

    def progress(self, job_id: str) -> Progress:
        return self._reader.progress(job_id)

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        return self._reader.log(job_id, last_bytes)

    def cancel(self, job_id: str) -> Job:
        """Request the job's cancellation; raise Conflict if a server watches the jobs."""
        with self._lock:
            return self._opened().cancel(job_id)

    def close(self) -> None:
        with self._lock:
            self._release()
        self._reader.close()

    def _look_after(self) -> None:
        """Watch the jobs that have not ended, unless a server does; let go once there is none."""
        with self._lock:
            if not self._reader.live():
                self._release()
            elif self._runner is None:
                with suppress(LockTaken):
                    self._runner = self._open()

    def _opened(self) -> Runner:
        if self._runner is None:
            try:
                self._runner = self._open()
            except LockTaken:
                raise Conflict(_SERVED) from None
        return self._runner

    def _release(self) -> None:
        if self._runner:
            self._runner.close()
            self._runner = None
