"""Experiments and their leaderboards."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Path, Response
from pydantic import BaseModel

from tipbench.server.api.parts import Parts
from tipbench.server.views.boards import ExperimentLine
from tipbench.web.errors import JsonAnswer

ExperimentName = Annotated[str, Path(description="The experiment's name, as in MLflow.", max_length=500)]


class Experiments(BaseModel):
    experiments: list[ExperimentLine]


def router(parts: Parts) -> APIRouter:
    bench = APIRouter(prefix="/api/bench", tags=["bench"])

    @bench.get(
        "/experiments",
        summary="List experiments with their numbers of judged, pending and failed cells",
        response_model=Experiments,
    )
    def experiments() -> Response:
        # A response of our own, here and in other lists that many poll: FastAPI takes a second turn of a thread, behind
        # all other readers, only to check what a model returns.
        return JsonAnswer({"experiments": [asdict(line) for line in parts.boards.experiments()]})

    @bench.get(
        "/leaderboard/{experiment:path}",
        summary="Get the leaderboard, as `tipbench compare --format json` prints it",
        response_class=Response,
        responses={
            200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The leaderboard"},
            304: {"description": "Unchanged since the given ETag"},
        },
    )
    def leaderboard(experiment: ExperimentName, if_none_match: Annotated[str | None, Header()] = None) -> Response:
        content, digest = parts.boards.leaderboard_json(experiment)
        etag = f'"{digest}"'
        if if_none_match == etag:
            return Response(status_code=304, headers={"ETag": etag})
        return Response(content, media_type="application/json", headers={"ETag": etag})

    return bench
