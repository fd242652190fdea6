"""Jobs: the list, and one with its progress, log and result, live while it goes."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import TipbenchError
from tipbench.core.identity import SHORT, text_digest
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, page

MENU = (urls.JOBS, "Jobs")

_A_PAGE = 50
STOP_POLLING = 286  # as htmx has it


@dataclass(frozen=True)
class JobView:
    """One moment of a job."""

    job: Job
    progress: Progress
    log: str
    tens_of_s: int = 0  # how long it has been running, so that a page that nothing else happens on still goes on

    @property
    def digest(self) -> str:
        """Another one as soon as anything that is shown has changed."""
        return text_digest(repr(self))[:SHORT]

    @property
    def phase(self) -> str:
        """Another one when there is something to be said aloud."""
        return f"{self.job.state}-{self.progress.phase}-{self.job.cancelling}"


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def view_of(job_id: str) -> JobView:
        job = parts.runner.job(job_id)
        running_ms = 0 if job.started_ms is None or job.ended else round(parts.clock() * 1000) - job.started_ms
        return JobView(job, parts.runner.progress(job_id), parts.runner.log(job_id), running_ms // 10_000)

    @pages.get("/jobs")
    def jobs(request: Request, before: int | None = None) -> Response:
        found = parts.runner.jobs(limit=_A_PAGE, before_ms=before)
        return page(request, parts, "jobs.html", jobs=found, more=len(found) == _A_PAGE, before=before)

    @pages.get("/jobs/{job_id}")
    def job(request: Request, job_id: str) -> Response:
        return page(request, parts, "job.html", view=view_of(job_id))

    @pages.get("/jobs/{job_id}/live")
    def live(request: Request, job_id: str, seen: str = "", phase: str = "") -> Response:
        """What has changed since; with the job's end the asking ends."""
        view = view_of(job_id)
        if view.digest == seen and not view.job.ended:
            return Response(status_code=204)
        status = STOP_POLLING if view.job.ended else 200
        return page(request, parts, "job_changes.html", status, view=view, aloud=view.phase != phase)

    @pages.post("/jobs/{job_id}/cancel")
    def cancel(request: Request, job_id: str) -> Response:
        return page(request, parts, "job_actions.html", job=parts.runner.cancel(job_id), swapped=False)

    @pages.post("/jobs/{job_id}/again")
    def again(request: Request, job_id: str) -> Response:
        """The same run: it does what is missing, and what failed before."""
        asked = {key: value for key, value in parts.runner.job(job_id).config.items() if value is not None}
        try:
            started = parts.runner.start(parts.requests.checked(asked), retry_failed=True)
        except TipbenchError as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return Response(status_code=204, headers={"HX-Redirect": urls.job(started.id)})

    return pages
