"""Whether the server is there. Everybody may ask, so it says nothing else."""

from fastapi import APIRouter
from pydantic import BaseModel


class Health(BaseModel):
    status: str


def router() -> APIRouter:
    health = APIRouter(tags=["health"])

    @health.get("/health", summary="Whether the server is there; the only answer without authentication")
    async def ask() -> Health:
        return Health(status="ok")

    return health
