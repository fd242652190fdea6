"""The recommender: rewards beside the leaderboard, gates, replays, promotions and shadows."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tipbench.recommender.shadows.statistics import ShadowDay
from tipbench.server.api.experiments import ExperimentName
from tipbench.server.api.parts import Parts
from tipbench.server.views.gates import GateLine
from tipbench.server.views.replays import ReplayLine
from tipbench.server.views.rewards_report import as_data


class Gates(BaseModel):
    gates: list[GateLine]


class Replays(BaseModel):
    replays: list[ReplayLine]


class Promotions(BaseModel):
    """The live policy, and its promotions and rollbacks, newest first. Only the command line can promote."""

    live: str
    acts: list[dict[str, Any]]


class ShadowDayOut(BaseModel):
    """A shadow's day. Agreement says nothing about quality; `by_chance` is what random choices would give."""

    shadow: str
    day_ms: int
    signals: int
    agreed: int
    agreement: float | None
    by_chance: float
    dropped: Mapping[str, int]
    latency_ms: float = Field(description="The median.")
    latency_95_ms: float
    profile_dimensions: int
    neutral: float


class Shadows(BaseModel):
    days: list[ShadowDayOut]


def router(parts: Parts) -> APIRouter:
    recommend = APIRouter(prefix="/api/recommend", tags=["recommend"])

    @recommend.get(
        "/rewards/{experiment:path}",
        summary="Get the rewards of a leaderboard's rows, as `tipbench recommend rewards --format json` prints them",
    )
    def rewards(experiment: ExperimentName) -> dict[str, Any]:
        return as_data(parts.boards.rewards(experiment))

    @recommend.get("/gates", summary="List gates, newest first")
    def gates() -> Gates:
        return Gates(gates=parts.recommender.gates.lines())

    @recommend.get("/gates/{gate_id}", summary="Get a gate as it was stored: verdict, reasons, plan, rules and outcome")
    def gate(gate_id: str) -> Mapping[str, Any]:
        return parts.recommender.gates.data(gate_id)

    @recommend.get("/replays", summary="List replays of the decision log, newest first")
    def replays() -> Replays:
        return Replays(replays=parts.recommender.replays.lines())

    @recommend.get("/replays/{replay_id}", summary="Get a replay as it was stored: verdict, estimates and their basis")
    def replay(replay_id: str) -> Mapping[str, Any]:
        return parts.recommender.replays.data(replay_id)

    @recommend.get("/promotions", summary="Get the live policy and its history")
    def promotions() -> Promotions:
        found = parts.recommender.promotions.history()
        return Promotions(live=found.live, acts=[act.model_dump(by_alias=True) for act in found.acts])

    @recommend.get("/shadows", summary="Get the shadows' statistics, day by day")
    def shadows() -> Shadows:
        return Shadows(days=[_shadow_day_out(day) for day in parts.recommender.shadows.read()])

    return recommend


def _shadow_day_out(day: ShadowDay) -> ShadowDayOut:
    return ShadowDayOut(**{name: getattr(day, name) for name in ShadowDayOut.model_fields})
