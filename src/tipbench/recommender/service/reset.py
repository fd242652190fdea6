"""Deleting all data about a user."""

from fastapi import APIRouter
from pydantic import BaseModel

from tipbench.recommender.records import UserId
from tipbench.recommender.service.answers import Parts, StrictRoute


class ResetIn(BaseModel, extra="forbid"):
    user_id: UserId


class ResetOut(BaseModel):
    """`cleared`: the policies that knew something."""

    user_id: str
    cleared: list[str]


def router(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["reset"], route_class=StrictRoute)

    @api.post("/reset", summary="Forget a user: what every policy has learned, and all events")
    def reset(request: ResetIn) -> ResetOut:
        return ResetOut(user_id=request.user_id, cleared=parts.recommender.reset(request.user_id))

    return api
