"""Scoring requests: choosing a candidate for a user."""

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from tipbench.recommender.recommender import Answer
from tipbench.recommender.records import Request
from tipbench.recommender.service.answers import Parts, StrictRoute, json_answer


class RankedOut(BaseModel):
    id: str
    score: float
    propensity: float


class ScoreOut(BaseModel):
    """The tip to show. `propensity`: the probability of this choice; `n`: the number of rewards known by then;
    `prior`: the population prior, if the policy has one; `ranking`: best first. If a request is repeated after more was
    learned or shown, the ranking holds only the chosen tip.
    """

    event_id: str
    chosen: str
    propensity: float
    epsilon: float
    n: int
    policy: str
    feature_version: str
    prior: str | None
    ranking: list[RankedOut]
    repeated: bool


def router(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["score"], route_class=StrictRoute)
    recommender = parts.recommender

    @api.post("/score", summary="Choose a tip with the live policy", response_model=ScoreOut)
    def score_live(request: Request) -> Response:
        return _as_answer(recommender.score(recommender.live, request))

    def add(policy: str) -> None:
        @api.post(f"/score/{policy}", summary=f"Choose a tip with {policy}", response_model=ScoreOut)
        def score(request: Request) -> Response:
            return _as_answer(recommender.score(policy, request))

    for policy in parts.policies:
        add(policy)
    return api


def _as_answer(answer: Answer) -> Response:
    ranking = [{"id": row.id, "score": row.score, "propensity": row.propensity} for row in answer.ranking]
    return json_answer({**vars(answer), "ranking": ranking})
