"""Decisions in rounds: start one, see where it stands, stop it, go on."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Response
from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.options import Options
from tipbench.server.api.experiments import ExperimentName
from tipbench.server.api.parts import Parts
from tipbench.server.views.decisions import DecisionRules, DecisionView
from tipbench.web.authentication import Admin


class RulesIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    claim: Literal["pool", "new"] | None = Field(
        None, description="Whose answers are the best, of this pool or of new ones."
    )
    good_enough: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Expected loss to stop at; 0: proof."
    )
    budget: int | None = Field(None, ge=1, description="Items that judges may be given, anchors and repeats included.")


class DecisionIn(RulesIn):
    """The decision's rules; options of the run stand beside them, and are validated like those of a run."""

    model_config = ConfigDict(extra="allow")


class RowOut(BaseModel):
    row: str
    out_after: int | None = Field(description="Items after which it was out.")
    parked: bool
    state: str
    judged: int
    mean: float | None
    wealth: dict[str, float | None] = Field(description="Of its account for each claim; null: certainly out.")


class OpenBatchOut(BaseModel):
    judge: str
    items: int
    created_ms: int


class DecisionOut(BaseModel):
    """Where a decision stands, as `tipbench decide --format json` prints it."""

    experiment: str
    says: str
    next: str
    winner: str | None
    proven: bool
    leader: str | None
    claim: str
    expected_loss: float | None
    good_enough: float
    judgements: int
    items: int
    likely_left: int | None
    spent: int
    budget: int | None
    stopped: str
    restarts: int
    wealth_needed: float
    other_account: str
    rows: list[RowOut]
    open_batches: list[OpenBatchOut]
    job: str | None = Field(description="The job that generates its answers, or did last.")


_PROPERTIES = RulesIn.model_json_schema()["properties"] | Options.model_json_schema()["properties"]
_SCHEMA = {"type": "object", "properties": _PROPERTIES, "additionalProperties": False}
_CONFIG = {"requestBody": {"required": True, "content": {"application/json": {"schema": _SCHEMA}}}}


def router(parts: Parts) -> APIRouter:
    api = APIRouter(prefix="/api/bench/decisions", tags=["bench"])
    decisions = parts.decisions

    @api.post("", status_code=202, summary="Start a decision between rows, in rounds", openapi_extra=_CONFIG)
    def start(asked: DecisionIn, response: Response) -> DecisionOut:
        rules = DecisionRules(asked.claim, asked.good_enough, asked.budget)
        found = decisions.start(asked.model_extra or {}, rules)
        if found.job:
            response.headers["Location"] = f"/api/jobs/{found.job.id}"
        return _out(found)

    @api.post("/stop/{experiment:path}", summary="Stop a decision, to take its leader as it is now")
    def stop(experiment: ExperimentName, admin: Admin) -> DecisionOut:
        return _out(decisions.stop(experiment, admin.name))

    @api.post(
        "/continue/{experiment:path}", status_code=202, summary="Go on with a decision, also with a larger budget"
    )
    def go_on(experiment: ExperimentName, rules: Annotated[RulesIn | None, Body()] = None) -> DecisionOut:
        return _out(decisions.go_on(experiment, DecisionRules(**(rules or RulesIn()).model_dump())))

    @api.get("/{experiment:path}", summary="Get where a decision stands")
    def decision(experiment: ExperimentName) -> DecisionOut:
        return _out(decisions.get(experiment))

    return api


def _out(found: DecisionView) -> DecisionOut:
    return DecisionOut(**found.as_data())
