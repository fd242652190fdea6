"""Simulations and gates: start one, follow its progress, read its outcome."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from tipbench.server.api.parts import Parts
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import SimulationAsked
from tipbench.server.views.simulations import Simulation


class SimulationOut(BaseModel):
    """`exit_status` 0: done, or for a gate, passed; 1: the gate was not passed; below 0: ended by that signal."""

    id: str
    state: Literal["queued", "running", "finished", "failed", "cancelled"]
    asked: SimulationAsked
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    exit_status: int | None
    message: str
    cancelling: bool
    passed: bool | None
    gate: str | None


class Simulations(BaseModel):
    simulations: list[SimulationOut]


class SimulationDetail(SimulationOut):
    progress: Progress
    log: str


def router(parts: Parts) -> APIRouter:
    api = APIRouter(prefix="/api/recommend/simulations", tags=["recommend"])
    view = parts.recommender.simulations

    @api.post("", status_code=202, summary="Start a simulation or a gate; they run one at a time")
    def start(asked: SimulationAsked, response: Response) -> SimulationOut:
        started = view.start(asked)
        response.headers["Location"] = f"/api/recommend/simulations/{started.job.id}"
        return SimulationOut(**_fields(started))

    @api.get("", summary="List simulations, newest first")
    def simulations(limit: Annotated[int, Query(ge=1, le=200)] = 50) -> Simulations:
        return Simulations(simulations=[SimulationOut(**_fields(one)) for one in view.newest(limit)])

    @api.get("/{simulation_id}", summary="Get a simulation with its progress and the end of its log")
    def simulation(simulation_id: str) -> SimulationDetail:
        one = view.one(simulation_id)
        return SimulationDetail(**_fields(one), progress=one.progress, log=view.log(simulation_id))

    @api.get(
        "/{simulation_id}/outcome",
        summary="Get the result, as `tipbench sim … --format json` prints it; 404 until it has finished",
        response_class=Response,
        responses={
            200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The outcome"}
        },
    )
    def outcome(simulation_id: str) -> Response:
        return Response(view.outcome_json(simulation_id), media_type="application/json")

    @api.get(
        "/{simulation_id}/log",
        summary="Get a simulation's log",
        response_class=Response,  # without a media type, so that errors are documented as JSON
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log"}},
    )
    def log(simulation_id: str) -> PlainTextResponse:
        return PlainTextResponse(view.log(simulation_id))

    @api.post("/{simulation_id}/cancel", status_code=202, summary="Cancel a simulation; nothing of it is stored")
    def cancel(simulation_id: str) -> SimulationOut:
        return SimulationOut(**_fields(view.cancel(simulation_id)))

    return api


def _fields(one: Simulation) -> dict[str, Any]:
    own = {"asked": one.asked, "passed": one.passed, "gate": one.gate}
    names = SimulationOut.model_fields.keys() - own.keys()
    return {**own, **{name: getattr(one.job, name) for name in names}}
