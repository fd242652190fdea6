"""All of the API, in the order in which its document shows it."""

from fastapi import APIRouter, Depends
from fastapi.security import HTTPBearer

from tipbench.server.api import experiments, health, jobs, judges, judging, recommend, runs, simulations
from tipbench.server.api.parts import Parts

_TOKEN = HTTPBearer(
    auto_error=False, description="An admin's or a judge's token."
)  # for the document: the gate decides


def routers(parts: Parts) -> list[APIRouter]:
    behind_the_gate = APIRouter(dependencies=[Depends(_TOKEN)])
    for one in (experiments, runs, jobs, judging, judges, recommend, simulations):
        behind_the_gate.include_router(one.router(parts))
    return [health.router(), behind_the_gate, judging.callback_router(parts)]
