"""An experiment's runs (one for each cell), paged and filtered, and a single run with its texts."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from tipbench.bench.records import StoredCell
from tipbench.server.api.experiments import ExperimentName
from tipbench.server.api.parts import Parts
from tipbench.server.views.boards import MAX_RUNS_PER_PAGE, CandidateScores, RunDetail, RunFilter, state_of
from tipbench.web.errors import JsonAnswer

State = Literal["judged", "pending", "failed", "empty"]


class Run(BaseModel):
    """A cell: one model with one prompt on one scenario, for one repeat."""

    run_id: str
    model: str
    prompt: str
    scenario: str
    factors: Mapping[str, str]
    repeat: int
    state: State
    failure: str | None
    candidates: int
    judged_by: str | None
    started_ms: int
    metrics: Mapping[str, float]


class Runs(BaseModel):
    runs: list[Run]
    total: int
    offset: int
    limit: int


class RunTexts(Run):
    """With what was asked, what the model wrote, and what judges gave it."""

    scenario_text: str
    prompt_text: str
    raw: str | None
    candidate_texts: list[str]
    scores: list[CandidateScores]
    params: Mapping[str, str]
    tags: Mapping[str, str]


def router(parts: Parts) -> APIRouter:
    bench = APIRouter(prefix="/api/bench", tags=["bench"])

    @bench.get("/runs/{experiment:path}", summary="List an experiment's runs, oldest first", response_model=Runs)
    def runs(
        experiment: ExperimentName,
        model: Annotated[str | None, Query(max_length=500)] = None,
        prompt: Annotated[str | None, Query(max_length=500)] = None,
        scenario: Annotated[str | None, Query(max_length=500)] = None,
        state: State | None = None,
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_RUNS_PER_PAGE)] = 100,
    ) -> Response:
        page = parts.boards.runs(experiment, RunFilter(model, prompt, scenario, state), offset, limit)
        found = {"total": page.total, "offset": page.offset, "limit": page.limit}
        # Written directly: having 50 runs validated as `Run` took three times as long as all the rest.
        return JsonAnswer({"runs": [_run_fields(cell) for cell in page.cells], **found})

    @bench.get("/run/{run_id}", summary="Get a run with its texts and scores")
    def run(run_id: str, experiment: Annotated[str, Query(max_length=500)]) -> RunTexts:
        return _run_texts(parts.boards.run(experiment, run_id))

    return bench


def _run_fields(cell: StoredCell) -> dict[str, Any]:
    return {
        "run_id": cell.run_id,
        "model": cell.model,
        "prompt": cell.prompt,
        "scenario": cell.scenario,
        "factors": cell.factors,
        "repeat": cell.repeat,
        "state": state_of(cell),
        "failure": cell.failure,
        "candidates": cell.candidates,
        "judged_by": cell.judged_by,
        "started_ms": cell.started_ms,
        "metrics": cell.metrics,
    }


def _run_texts(detail: RunDetail) -> RunTexts:
    return RunTexts(
        **_run_fields(detail.cell),
        scenario_text=detail.scenario,
        prompt_text=detail.prompt,
        raw=detail.raw,
        candidate_texts=list(detail.candidates),
        scores=list(detail.scores),
        params=detail.params,
        tags=detail.tags,
    )
