"""All routers of the API, in the order of the OpenAPI document."""

from fastapi import APIRouter, Depends
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from tipbench.server.api import decisions, experiments, jobs, judges, judging, recommend, runs, simulations
from tipbench.server.api import routers as health
from tipbench.server.api.parts import Parts

_TOKEN = HTTPBearer(
    auto_error=False, description="An admin's or a judge's token."
)  # for the OpenAPI document only; the middleware authenticates


def routers(parts: Parts) -> list[APIRouter]:
    authenticated = APIRouter(dependencies=[Depends(_TOKEN)])
    for one in (experiments, runs, decisions, jobs, judging, judges, recommend, simulations):
        authenticated.include_router(one.router(parts))
    return [health.router(), authenticated, judging.callback_router(parts)]


# Health check. It needs no authentication, so it reveals nothing else.


class Health(BaseModel):
    status: str


def router() -> APIRouter:
    health = APIRouter(tags=["health"])

    @health.get("/health", summary="Check that the server is up; the only path that needs no token")
    async def ask() -> Health:
        return Health(status="ok")

    return health
