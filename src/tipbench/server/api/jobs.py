"""Run jobs: start one, follow its progress, cancel it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.options import Options
from tipbench.core.errors import DatabaseBusy, RunnerError
from tipbench.core.untrusted import json_text
from tipbench.server.api.experiments import ExperimentName
from tipbench.server.api.parts import Parts
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress
from tipbench.server.views.run_requests import Choices, Estimate
from tipbench.web.errors import JsonAnswer

_POLL_S = 0.5  # how often the event stream checks a job
_KEEP_ALIVE_S = 15.0
_CONFIG = {"requestBody": {"required": True, "content": {"application/json": {"schema": Options.model_json_schema()}}}}
_EVENT = {
    "type": "object",
    "description": "`data` is a job as JSON, with its progress.",
    "properties": {"event": {"enum": ["progress", "end"]}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
Config = Annotated[dict[str, Any], Body(description="Options of the run; those left out have their defaults.")]


class JobOut(BaseModel):
    """A job that runs the bench. `exit_status` 0: all done, 1: done but cells failed, below 0: ended by that signal."""

    id: str
    state: Literal["queued", "running", "finished", "failed", "cancelled"]
    experiment: str
    config: Mapping[str, Any]
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    exit_status: int | None
    message: str
    cancelling: bool
    links: Mapping[str, str]


class Jobs(BaseModel):
    jobs: list[JobOut]


class JobDetail(JobOut):
    progress: Progress
    log: str


def router(parts: Parts) -> APIRouter:
    api = APIRouter()
    _add_starting(api, parts)
    _add_judging(api, parts)
    _add_publishing(api, parts)
    _add_watching(api, parts)
    return api


def _add_starting(api: APIRouter, parts: Parts) -> None:
    @api.get("/api/bench/choices", tags=["bench"], summary="List the models, prompts, suites and judges to choose from")
    def choices(
        suite: Annotated[str | None, Query(max_length=4096, description="A suite's name or folder.")] = None,
    ) -> Choices:
        return parts.requests.choices(suite_name=suite)

    @api.post(
        "/api/bench/estimate",
        tags=["bench"],
        summary="Estimate a run's cells and time without starting it",
        openapi_extra=_CONFIG,
    )
    def estimate(config: Config) -> Estimate:
        return parts.requests.estimate(config)

    @api.post(
        "/api/bench/run", status_code=202, tags=["bench"], summary="Start a run of all phases", openapi_extra=_CONFIG
    )
    def start(
        config: Config,
        response: Response,
        retry_failed: Annotated[bool, Query(description="Try cells that failed before again.")] = False,
        fresh: Annotated[
            bool, Query(description="Start over: cells of this grid that are stored already no longer count.")
        ] = False,
    ) -> JobOut:
        job = parts.runner.start(parts.requests.validate(config), retry_failed, fresh)
        response.headers["Location"] = f"/api/jobs/{job.id}"
        return _job_out(job)


class JudgeIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    judge: str = Field(max_length=40, description="An automatic judge: agent, command, webhook, model or lexical.")


def _add_judging(api: APIRouter, parts: Parts) -> None:
    @api.post(
        "/api/bench/judge/{experiment:path}",
        status_code=202,
        tags=["bench"],
        summary="Have an automatic judge score what is pending in an experiment",
    )
    def judge(experiment: ExperimentName, asked: JudgeIn, response: Response) -> JobOut:
        job = parts.runner.judge(parts.requests.validate_judge(experiment, asked.judge))
        response.headers["Location"] = f"/api/jobs/{job.id}"
        return _job_out(job)


def _add_publishing(api: APIRouter, parts: Parts) -> None:
    @api.post(
        "/api/bench/publish/{experiment:path}",
        status_code=202,
        tags=["bench"],
        summary="Show an experiment on MLflow's pages: prompts, traces, dataset and assessments",
    )
    def publish(experiment: ExperimentName, response: Response) -> JobOut:
        job = parts.runner.publish(parts.requests.validate_publish(experiment))
        response.headers["Location"] = f"/api/jobs/{job.id}"
        return _job_out(job)


def _add_watching(api: APIRouter, parts: Parts) -> None:
    runner = parts.runner

    @api.get("/api/jobs", tags=["jobs"], summary="List jobs, newest first", response_model=Jobs)
    def jobs(limit: Annotated[int, Query(ge=1, le=200)] = 50) -> Response:
        return JsonAnswer(Jobs(jobs=[_job_out(job) for job in runner.jobs(limit)]).model_dump())

    @api.get("/api/jobs/{job_id}", tags=["jobs"], summary="Get a job with its progress and the end of its log")
    def job(job_id: str) -> JobDetail:
        found = runner.job(job_id)
        return JobDetail(**_job_out(found).model_dump(), progress=runner.progress(job_id), log=runner.log(job_id))

    @api.get(
        "/api/jobs/{job_id}/log",
        tags=["jobs"],
        summary="Get a job's log, as far as it is stored",
        response_class=Response,  # without a media type, so that errors are documented as JSON
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log"}},
    )
    def log(job_id: str) -> PlainTextResponse:
        runner.job(job_id)
        return PlainTextResponse(runner.log(job_id, last_bytes=2_000_000))

    @api.post(
        "/api/jobs/{job_id}/cancel", status_code=202, tags=["jobs"], summary="Cancel a job; its models are unloaded"
    )
    def cancel(job_id: str) -> JobOut:
        return _job_out(runner.cancel(job_id))

    @api.get(
        "/api/jobs/{job_id}/events",
        tags=["jobs"],
        summary="Follow a job's progress as server-sent events until it has ended",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": _EVENT}}, "description": "Events"}},
    )
    async def events(job_id: str, request: Request) -> StreamingResponse:
        await run_in_threadpool(runner.job, job_id)  # an unknown job is an error before the stream begins
        return StreamingResponse(_events(parts, job_id, request), media_type="text/event-stream")


async def _events(parts: Parts, job_id: str, request: Request) -> AsyncIterator[str]:
    """Yield an event whenever the job has changed; comments in between keep proxies from closing the connection."""
    last, quiet_s = "", 0.0
    while not await request.is_disconnected():
        try:
            job = await run_in_threadpool(parts.runner.job, job_id)
            progress = await run_in_threadpool(parts.runner.progress, job_id)
        except (RunnerError, DatabaseBusy):  # unavailable for a moment: the client can wait
            pass
        else:
            data = json_text({**_job_out(job).model_dump(), "progress": asdict(progress)}, indent=None)
            if data != last:
                yield f"event: {'end' if job.ended else 'progress'}\ndata: {data}\n\n"
                last, quiet_s = data, 0.0
            if job.ended:
                return
        await asyncio.sleep(_POLL_S)
        quiet_s += _POLL_S
        if quiet_s >= _KEEP_ALIVE_S:
            yield ": still here\n\n"
            quiet_s = 0.0


def _job_out(job: Job) -> JobOut:
    return JobOut(
        experiment=job.experiment, **{name: getattr(job, name) for name in JobOut.model_fields if name != "experiment"}
    )
