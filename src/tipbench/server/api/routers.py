"""All of the API, in the order in which its document shows it."""

from fastapi import APIRouter, Depends
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from tipbench.server.api import experiments, jobs, judges, judging, recommend, runs, simulations
from tipbench.server.api import routers as health
from tipbench.server.api.parts import Parts

_TOKEN = HTTPBearer(
    auto_error=False, description="An admin's or a judge's token."
)  # for the document: the gate decides


def routers(parts: Parts) -> list[APIRouter]:
    behind_the_gate = APIRouter(dependencies=[Depends(_TOKEN)])
    for one in (experiments, runs, jobs, judging, judges, recommend, simulations):
        behind_the_gate.include_router(one.router(parts))
    return [health.router(), behind_the_gate, judging.callback_router(parts)]


# Whether the server is there. Everybody may ask, so it says nothing else.


class Health(BaseModel):
    status: str


def router() -> APIRouter:
    health = APIRouter(tags=["health"])

    @health.get("/health", summary="Whether the server is there; the only answer without authentication")
    async def ask() -> Health:
        return Health(status="ok")

    return health
