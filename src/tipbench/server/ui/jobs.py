"""Jobs: the list, and a single job with its progress, log and result, updated while it runs."""

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

_PAGE_SIZE = 50
STOP_POLLING = 286  # a status defined by htmx


@dataclass(frozen=True)
class JobView:
    """A snapshot of a job."""

    job: Job
    progress: Progress
    log: str
    tens_of_s: int = 0  # how long it has been running, so that the page is refreshed even if nothing else changes

    @property
    def digest(self) -> str:
        """Return a digest that changes with anything that is shown."""
        return text_digest(repr(self))[:SHORT]

    @property
    def phase(self) -> str:
        """Return a key that changes when screen readers should announce something."""
        return f"{self.job.state}-{self.progress.phase}-{self.job.cancelling}"


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def view_of(job_id: str) -> JobView:
        job = parts.runner.job(job_id)
        running_ms = 0 if job.started_ms is None or job.ended else round(parts.clock() * 1000) - job.started_ms
        return JobView(job, parts.runner.progress(job_id), parts.runner.log(job_id), running_ms // 10_000)

    @pages.get("/jobs")
    def jobs(request: Request, before: int | None = None) -> Response:
        found = parts.runner.jobs(limit=_PAGE_SIZE, before_ms=before)
        return page(request, parts, "jobs.html", jobs=found, more=len(found) == _PAGE_SIZE, before=before)

    @pages.get("/jobs/{job_id}")
    def job(request: Request, job_id: str) -> Response:
        return page(request, parts, "job.html", view=view_of(job_id))

    @pages.get("/jobs/{job_id}/live")
    def live(request: Request, job_id: str, seen: str = "", phase: str = "") -> Response:
        """Return what has changed since the last poll; after the job's end, tell htmx to stop polling."""
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
        """Start the same run again: it does what is missing and retries what failed."""
        config = {key: value for key, value in parts.runner.job(job_id).config.items() if value is not None}
        try:
            if parts.runner.job(job_id).is_judging:
                started = parts.runner.judge(parts.requests.validate_judge(config["experiment"], config["judge"]))
            elif parts.runner.job(job_id).is_publishing:
                started = parts.runner.publish(parts.requests.validate_publish(config["experiment"]))
            else:
                started = parts.runner.start(parts.requests.validate(config), retry_failed=True)
        except TipbenchError as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return Response(status_code=204, headers={"HX-Redirect": urls.job(started.id)})

    return pages
