"""Rewarding events."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from tipbench.recommender.recommender import Outcome
from tipbench.recommender.records import Reward
from tipbench.recommender.service.answers import Parts, StrictRoute, json_answer


class RewardIn(Reward):
    """`profile_features` may be sent along, and is ignored: what is learned from was seen when it was chosen."""

    profile_features: Any = None

    def to_reward(self) -> Reward:
        return Reward(user_id=self.user_id, event_id=self.event_id, reward=self.reward)


class RewardOut(BaseModel):
    """`n`: the number of rewards learned from so far."""

    status: Literal["applied", "duplicate", "late"]
    n: int


class ServedRewardOut(RewardOut):
    policy: str


_LATE = "Too late: recorded, but nothing was learned from it."


def router(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["reward"], route_class=StrictRoute)
    recommender = parts.recommender

    @api.post(
        "/reward",
        summary="Send the reward of a served tip, whichever policy chose it",
        response_model=ServedRewardOut,
        responses={202: {"model": ServedRewardOut, "description": _LATE}},
    )
    def reward_served(given: RewardIn) -> Response:
        policy, outcome = recommender.reward_served(given.to_reward())
        return _as_answer(outcome, policy=policy)

    def add(policy: str) -> None:
        @api.post(
            f"/reward/{policy}",
            summary=f"Send the reward of a tip that {policy} chose",
            response_model=RewardOut,
            responses={202: {"model": RewardOut, "description": _LATE}},
        )
        def reward(given: RewardIn) -> Response:
            return _as_answer(recommender.reward(policy, given.to_reward()))

    for policy in parts.policies:
        add(policy)
    return api


def _as_answer(outcome: Outcome, **more: str) -> Response:
    return json_answer({"status": outcome.status, "n": outcome.n, **more}, 202 if outcome.status == "late" else 200)
