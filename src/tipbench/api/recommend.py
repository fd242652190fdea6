"""What the recommender served, beside the bench."""

from typing import Any

from fastapi import APIRouter

from tipbench.admin.rewards_report import as_data
from tipbench.api.experiments import ExperimentName
from tipbench.api.parts import Parts


def router(parts: Parts) -> APIRouter:
    recommend = APIRouter(prefix="/api/recommend", tags=["recommend"])

    @recommend.get(
        "/rewards/{experiment:path}",
        summary="What users did with a leaderboard's rows, as `tipbench recommend rewards --format json` writes it",
    )
    def rewards(experiment: ExperimentName) -> dict[str, Any]:
        return as_data(parts.boards.rewards(experiment))

    return recommend
