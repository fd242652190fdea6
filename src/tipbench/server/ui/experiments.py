"""The list of experiments, with the active jobs above it."""

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
    """A running or queued job."""

    job: Job
    progress: Progress


@dataclass(frozen=True)
class ActiveJobs:
    """All active jobs, oldest first."""

    lines: tuple[Active, ...]
    problem: str = ""  # why they can't be listed

    @property
    def digest(self) -> str:
        """Return a digest that changes with anything that is shown."""
        return text_digest(repr((self.lines, self.problem)))[:SHORT]

    @property
    def names(self) -> str:
        """Return a digest that changes when a job starts or ends, as the list of experiments may then."""
        return text_digest(" ".join(one.job.id for one in self.lines))[:SHORT]


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def active_jobs() -> ActiveJobs:
        try:
            found = [job for job in parts.runner.jobs() if not job.ended]
            return ActiveJobs(tuple(Active(job, parts.runner.progress(job.id)) for job in reversed(found)))
        except RunnerError as error:  # stored experiments can be shown anyway
            return ActiveJobs((), str(error))

    @pages.get("/experiments")
    def experiments(request: Request) -> Response:
        return page(request, parts, "experiments.html", lines=parts.boards.experiments(), active=active_jobs())

    @pages.get(urls.EXPERIMENT_ANSWER)
    def answer(request: Request, experiment: str) -> Response:
        """Return an experiment's answer. The list asks for it once the line is seen: computing it takes time."""
        return page(request, parts, "experiment_answer.html", says=parts.boards.leaderboard(experiment).answer.says)

    @pages.get("/experiments/jobs")
    def jobs_under_way(request: Request, seen: str = "", names: str = "") -> Response:
        """Return what has changed since the last poll: nothing, the jobs, or the jobs and the list of experiments."""
        active = active_jobs()
        if active.digest == seen:
            return Response(status_code=204)
        lines = None if active.names == names else parts.boards.experiments()
        return page(request, parts, "experiments_changes.html", lines=lines, active=active)

    return pages
