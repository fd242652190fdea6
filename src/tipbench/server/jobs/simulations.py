"""Simulations on this machine, one at a time: each is a process of its own, and goes on when the server dies."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tipbench.core.errors import Conflict, NotFound
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.job_watch import SIMULATIONS
from tipbench.server.jobs.local_jobs import GRACE_S, LocalJobs
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import SimulationAsked

OUTCOME = "outcome.json"
_LONGEST_S = 6 * 3600  # more than the largest that may be asked for takes
MOST_WAITING = 20


# Simulations: `tipbench sim run` and `sim gate`, which tidy up after themselves.


class SimulationWork:
    kept = "nothing is kept of it: start it again, and it finds the same"

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        asked = SimulationAsked.model_validate(stored.job.config)
        kept = ("--progress", str(folder.path / "progress.json"), "--out", str(folder.path / OUTCOME))
        return [
            *(sys.executable, "-P", "-m", "tipbench", *asked.words),
            *("--timeout", str(_LONGEST_S), *kept),
        ]

    def name(self, job: Job) -> str:
        return f"simulation {job.id} ({SimulationAsked.model_validate(job.config).title})"

    def tidied(self, stored: StoredJob, progress: Progress | None) -> str:  # noqa: ARG002 - one signature for all
        return ""


class SimulationRunner:
    """One for each home. All of it may be called from several threads."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        grace_s: float = GRACE_S,
    ) -> None:
        self._starting = threading.Lock()
        work = SimulationWork()
        self._jobs = LocalJobs(home, "simulations", "simulations.lock", work, settings, clock, new_id, grace_s)

    def start(self, asked: SimulationAsked) -> Job:
        """It begins at once or waits its turn. Raises InvalidInput for one that can't be carried out."""
        asked.check()
        with self._starting:
            waiting = [job for job in self._jobs.live() if job.state == "queued"]
            if len(waiting) >= MOST_WAITING:
                raise Conflict(f"{len(waiting)} simulations wait for their turn already; cancel one, or wait")
            return self._jobs.add(asked.model_dump(mode="json", exclude_none=True), (SIMULATIONS,))

    def simulations(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        """The newest first."""
        return self._jobs.jobs(limit, before_ms)

    def simulation(self, job_id: str) -> Job:
        """Raises UnknownJob."""
        return self._jobs.job(job_id)

    def progress(self, job_id: str) -> Progress:
        """How far it is; what it says when it ended stays."""
        return self._jobs.progress(job_id, Progress())

    def outcome(self, job_id: str) -> bytes:
        """What it found, as JSON. Raises NotFound where it has found nothing, or not yet."""
        job = self.simulation(job_id)
        if job.state != "finished":
            raise NotFound(f"simulation {job.id} is {job.state}, so there is no outcome")
        try:
            return (self._jobs.folder(job_id).path / OUTCOME).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"what simulation {job.id} found was removed from its folder; start it again") from None

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        """The end of what it printed, from a line's beginning; printable."""
        return self._jobs.log(job_id, last_bytes)

    def cancel(self, job_id: str) -> Job:
        """Asks for its end; one that has ended stays as it is."""
        return self._jobs.cancel(job_id)

    def close(self) -> None:
        """Stops watching. What runs goes on."""
        self._jobs.close()
