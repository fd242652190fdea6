"""Judges and their tokens. A token is shown once, when the judge is invited."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from tipbench.server.api.parts import Parts


class Judge(BaseModel):
    name: str
    created_ms: int
    last_seen_ms: int | None


class Judges(BaseModel):
    judges: list[Judge]


class Invitation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=40, description="The name that the judge's scores are stored under.")


class Invited(BaseModel):
    name: str
    token: str = Field(description="Shown only this once.")


def router(parts: Parts) -> APIRouter:
    judges = APIRouter(prefix="/api/judges", tags=["judges"])

    @judges.get("", summary="List the invited judges")
    def listed() -> Judges:
        return Judges(
            judges=[
                Judge(name=one.name, created_ms=one.created_ms, last_seen_ms=one.last_seen_ms)
                for one in parts.tokens.judges()
            ]
        )

    @judges.post("", status_code=201, summary="Invite a judge; the answer has the token, which is shown only this once")
    def invite(invitation: Invitation) -> Invited:
        return Invited(name=invitation.name, token=parts.tokens.invite(invitation.name))

    @judges.delete("/{name}", status_code=204, summary="Revoke a judge's token and sessions")
    def revoke(name: str) -> None:
        parts.tokens.revoke(name)

    return judges
