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

    unfinished_note = "nothing of it is stored: start it again, and it will give the same result"

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


class SimulationRunner(LocalJobs):
    """Runs simulations as processes of this machine, one at a time. One instance per home."""

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
        super().__init__(home, "simulations", "simulations.lock", kind, settings, clock, new_id, grace_s)

    def start(self, asked: SimulationAsked) -> Job:
        """Start or queue a simulation. Raises InvalidInput if it can't be run, Conflict if too many are queued."""
        asked.check()
        with self._starting:
            waiting = [job for job in self.live() if job.state == "queued"]
            if len(waiting) >= MAX_WAITING:
                raise Conflict(f"{len(waiting)} simulations are queued already; cancel one, or wait")
            return self.add(asked.model_dump(mode="json", exclude_none=True), (SIMULATIONS,))

    def outcome(self, job_id: str) -> bytes:
        """Return its outcome as JSON. Raises NotFound if it has none, or none yet."""
        job = self.job(job_id)
        if job.state != "finished":
            raise NotFound(f"simulation {job.id} is {job.state}, so it has no result")
        try:
            return (self.folder(job_id).path / OUTCOME).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"the result of simulation {job.id} was removed from its folder; start it again") from None
