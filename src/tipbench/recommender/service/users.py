"""What is known about a user: what each policy has learned, and deleting all of it."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.recommender import Stats
from tipbench.recommender.records import UserId
from tipbench.recommender.service.answers import Parts, StrictRoute, json_answer


class StatsOut(BaseModel):
    """For a new user, n is 0. `waiting`: events without a reward so far; `condition`: condition number of X'X + λI."""

    user_id: str
    policy: str
    feature_version: str
    prior: str | None
    parameters: Mapping[str, float | str]
    n: int
    epsilon: float
    mean_reward: float | None
    theta: Mapping[str, float]
    ridge: float = Field(alias="lambda")
    condition: float
    waiting: int
    duplicates: int
    late: int
    updated_ms: int | None


class ResetIn(BaseModel, extra="forbid"):
    user_id: UserId


class ResetOut(BaseModel):
    """`cleared`: the policies that had learned something about the user."""

    user_id: str
    cleared: list[str]


def router(parts: Parts) -> APIRouter:
    api = APIRouter()
    api.include_router(_stats(parts))
    api.include_router(_reset(parts))
    return api


def _stats(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["stats"])

    def add(policy: Policy[Any], path: str) -> None:
        @api.get(path, summary=f"What {policy.name} knows about a user", response_model=StatsOut)
        def stats(user_id: UserId) -> Response:
            return _as_answer(parts.recommender.stats(policy.name, user_id))

    # Paths with the user in the query come first: /stats/egreedy/v2 is a policy, not the user v2 of egreedy.
    for policy in parts.policies.values():
        add(policy, f"/stats/{policy.name}")
    for policy in parts.policies.values():
        add(policy, f"/stats/{policy.name}/{{user_id}}")
    return api


def _as_answer(stats: Stats) -> Response:
    values = {name: value for name, value in vars(stats).items() if name != "learned"}
    return json_answer({**values, **stats.learned})


def _reset(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["reset"], route_class=StrictRoute)

    @api.post("/reset", summary="Delete a user: everything that policies have learned, and all events")
    def reset(request: ResetIn) -> ResetOut:
        return ResetOut(user_id=request.user_id, cleared=parts.recommender.reset(request.user_id))

    return api
