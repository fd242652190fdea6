"""All routes of the service, in the order of its OpenAPI document."""

from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from tipbench.recommender.service import health, reset, reward, score, shadows, stats
from tipbench.recommender.service.answers import Parts

_KEY = HTTPBearer(
    auto_error=False, description="The service's key."
)  # only for the document; the middleware authenticates


def add_routes(app: FastAPI, parts: Parts, responses: dict[int | str, dict[str, Any]]) -> None:
    """Include all routers directly in the app: nested routers are searched on every request."""
    app.include_router(health.router(parts), responses=responses)
    for one in (score, reward, stats, reset, shadows):
        app.include_router(one.router(parts), dependencies=[Depends(_KEY)], responses=responses)
