"""Simulations on this machine, one at a time: each is its own process and survives the server."""

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
_TIMEOUT_S = 6 * 3600  # longer than the largest simulation that can be requested takes
MAX_WAITING = 20


class SimulationJobKind:
    """Simulations: `tipbench sim run` and `sim gate`, which clean up after themselves."""

    unfinished_note = "nothing is kept of it: start it again, and it finds the same"

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        asked = SimulationAsked.model_validate(stored.job.config)
        files = ("--progress", str(folder.path / "progress.json"), "--out", str(folder.path / OUTCOME))
        return [
            *(sys.executable, "-P", "-m", "tipbench", *asked.arguments),
            *("--timeout", str(_TIMEOUT_S), *files),
        ]

    def name(self, job: Job) -> str:
        return f"simulation {job.id} ({SimulationAsked.model_validate(job.config).title})"

    def clean_up(self, stored: StoredJob, progress: Progress | None) -> str:  # noqa: ARG002 - the protocol's signature
        return ""


class SimulationRunner:
    """Runs simulations as local processes. Use one instance per home; it is thread-safe."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        grace_s: float = GRACE_S,
    ) -> None:
        self._starting = threading.Lock()
        kind = SimulationJobKind()
        self._jobs = LocalJobs(home, "simulations", "simulations.lock", kind, settings, clock, new_id, grace_s)

    def start(self, asked: SimulationAsked) -> Job:
        """Start or queue a simulation. Raises InvalidInput if it can't be run, Conflict if too many are queued."""
        asked.check()
        with self._starting:
            waiting = [job for job in self._jobs.live() if job.state == "queued"]
            if len(waiting) >= MAX_WAITING:
                raise Conflict(f"{len(waiting)} simulations wait for their turn already; cancel one, or wait")
            return self._jobs.add(asked.model_dump(mode="json", exclude_none=True), (SIMULATIONS,))

    def simulations(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        """Return simulations, newest first."""
        return self._jobs.jobs(limit, before_ms)

    def simulation(self, job_id: str) -> Job:
        """Return the simulation's job; raise UnknownJob if there is none."""
        return self._jobs.job(job_id)

    def progress(self, job_id: str) -> Progress:
        """Return its progress; after its end, the last that it reported."""
        return self._jobs.progress(job_id, Progress())

    def outcome(self, job_id: str) -> bytes:
        """Return its outcome as JSON. Raises NotFound if it has none, or none yet."""
        job = self.simulation(job_id)
        if job.state != "finished":
            raise NotFound(f"simulation {job.id} is {job.state}, so there is no outcome")
        try:
            return (self._jobs.folder(job_id).path / OUTCOME).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"what simulation {job.id} found was removed from its folder; start it again") from None

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        """Return the end of its output, starting at the beginning of a line and made printable."""
        return self._jobs.log(job_id, last_bytes)

    def cancel(self, job_id: str) -> Job:
        """Request its cancellation; one that has ended is left unchanged."""
        return self._jobs.cancel(job_id)

    def close(self) -> None:
        """Stop watching jobs. Running simulations continue."""
        self._jobs.close()
