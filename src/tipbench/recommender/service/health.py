"""The health check, which needs no key."""

import logging

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from tipbench.core.errors import StateError
from tipbench.core.version import __version__
from tipbench.recommender.log.segmented_log import RateLimitedLog
from tipbench.recommender.service.answers import Parts

_log = logging.getLogger(__name__)


class Health(BaseModel):
    status: str
    version: str
    live: str


def router(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["health"])
    rate_limited_log = RateLimitedLog(_log)

    @api.get("/health", summary="Check that the service is up; the only path that needs no key")
    def health() -> Health:
        return Health(status="ok", version=__version__, live=live())

    def live() -> str:
        """Return the live policy. This path needs no key, so the reason for a failure goes only to the log."""
        try:
            return parts.recommender.live
        except StateError as error:
            rate_limited_log.warning("the live policy can't be read", error)
            raise HTTPException(503, "the live policy can't be read; the server's log says why") from error

    return api
