"""Simulations: `tipbench sim run` and `sim gate`, which tidy up after themselves."""

import sys

from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import SimulationAsked

OUTCOME = "outcome.json"
_LONGEST_S = 6 * 3600  # more than the largest that may be asked for takes


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
