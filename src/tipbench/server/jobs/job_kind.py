"""What one kind of jobs does: which command it is, how it is named, and what has to be tidied up after it."""

from typing import Protocol

from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.progress import Progress


class Work(Protocol):
    @property
    def kept(self) -> str:
        """What is left of a job that did not come to its end, in words for its message."""
        ...

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        """As one would type it."""
        ...

    def name(self, job: Job) -> str:
        """By which those that wait for it tell what they wait for."""
        ...

    def tidied(self, stored: StoredJob, progress: Progress | None) -> str:
        """After whatever ended it; words for its message where something could not be tidied up."""
        ...
