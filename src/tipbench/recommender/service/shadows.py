"""The status of the shadow policies: which are on, and how their work ended."""

from dataclasses import asdict

from fastapi import APIRouter
from pydantic import BaseModel

from tipbench.recommender.service.answers import Parts
from tipbench.recommender.shadows.runner import ShadowStatus


class CountsOut(BaseModel):
    """Every offered decision was either published or dropped: the queue was full, it took too long, or it failed."""

    offered: int
    published: int
    full: int
    late: int
    failed: int


class ShadowOut(BaseModel):
    """Counts of the worker that answers, since it started."""

    name: str
    policy: str
    on: bool
    counts: CountsOut


class ShadowsOut(BaseModel):
    shadows: list[ShadowOut]


def router(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["shadows"])

    @api.get("/shadows", summary="Policies that run beside the live one and get no rewards")
    def shadows() -> ShadowsOut:
        return ShadowsOut(shadows=[_as_answer(status) for status in parts.shadows.status()])

    return api


def _as_answer(status: ShadowStatus) -> ShadowOut:
    return ShadowOut(**asdict(status))
