"""The list of experiments, with the jobs that are under way above it."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import RunnerError
from tipbench.core.identity import SHORT, text_digest
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, page

MENU = (urls.EXPERIMENTS, "Experiments")


@dataclass(frozen=True)
class Active:
    """A job that runs or waits."""

    job: Job
    progress: Progress


@dataclass(frozen=True)
class ActiveJobs:
    """All of them, the one that was asked for first at the top."""

    lines: tuple[Active, ...]
    problem: str = ""  # why nobody knows

    @property
    def digest(self) -> str:
        """Another one as soon as anything that is shown has changed."""
        return text_digest(repr((self.lines, self.problem)))[:SHORT]

    @property
    def names(self) -> str:
        """Another one as soon as a job comes or goes: then there may be something new in the list below."""
        return text_digest(" ".join(one.job.id for one in self.lines))[:SHORT]


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def active_jobs() -> ActiveJobs:
        try:
            found = [job for job in parts.runner.jobs() if not job.ended]
            return ActiveJobs(tuple(Active(job, parts.runner.progress(job.id)) for job in reversed(found)))
        except RunnerError as error:  # what is stored can be looked at all the same
            return ActiveJobs((), str(error))

    @pages.get("/experiments")
    def experiments(request: Request) -> Response:
        return page(request, parts, "experiments.html", lines=parts.boards.experiments(), active=active_jobs())

    @pages.get("/experiments/jobs")
    def jobs_under_way(request: Request, seen: str = "", names: str = "") -> Response:
        """What has changed since: nothing, the jobs, or the jobs and the list of experiments."""
        active = active_jobs()
        if active.digest == seen:
            return Response(status_code=204)
        lines = None if active.names == names else parts.boards.experiments()
        return page(request, parts, "experiments_changes.html", lines=lines, active=active)

    return pages
