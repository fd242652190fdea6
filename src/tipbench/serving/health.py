"""Whether the service is there. Everybody may ask."""

from fastapi import APIRouter
from pydantic import BaseModel

from tipbench import __version__
from tipbench.serving.parts import Parts


class Health(BaseModel):
    status: str
    version: str
    live: str


def router(parts: Parts) -> APIRouter:
    api = APIRouter(tags=["health"])

    @api.get("/health", summary="Whether the service is there; the only answer without the key")
    async def health() -> Health:
        return Health(status="ok", version=__version__, live=parts.recommender.live)

    return api
