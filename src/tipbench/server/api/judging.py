"""Judging over the API: the next batch, its items, its scores, and the callback for webhook judges.

Judging is blind: judges never see which model, prompt, experiment or run an item comes from.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.judge.apply import Applied
from tipbench.bench.judge.judges.webhook import SIGNATURE_HEADER, TIMESTAMP_HEADER
from tipbench.bench.judge.sample import FEWEST_ITEMS
from tipbench.core.untrusted import printable
from tipbench.server.api.parts import Parts
from tipbench.server.views.judging import OpenBatch, Saved
from tipbench.server.views.sheet import Change
from tipbench.web.authentication import Admin, signed_in
from tipbench.web.headers import BodyTooLarge

_MAX_CONCURRENT_CALLBACKS = 4  # being checked and applied
_MAX_BODY_BYTES = 200_000_000  # of all callbacks being received, and of all waiting: anybody may send them


class Status(BaseModel):
    """What waits for you. No experiment is named, because its name might reveal a model."""

    judge: str
    open: list[OpenBatch]
    candidates: int


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    experiment: str | None = Field(None, max_length=500, description="Only for admins: the experiment to judge.")
    judge: str | None = Field(None, max_length=40, description="Only for admins: the judge whose batch it is.")
    items: int | None = Field(
        None, ge=FEWEST_ITEMS, le=10_000, description="Maximum size of a new batch, anchors and repeats included."
    )


class Next(BaseModel):
    batch: OpenBatch | None = Field(description="null: nothing waits.")


class Acceptance(BaseModel):
    model_config = ConfigDict(extra="forbid")

    why: str = Field(min_length=1, max_length=400, pattern=r"\S")


class AppliedOut(BaseModel):
    """The result of a batch. `drift`: how far the judge is from the anchors, and from their own earlier scores."""

    judge: str
    batch: str
    counted: bool
    provisional: bool
    candidates: int
    left: int
    changed: bool
    quarantine: str
    accepted: str
    drift: Mapping[str, Any]


def router(parts: Parts) -> APIRouter:
    judging = APIRouter(prefix="/api/judging", tags=["judging"])
    desk = parts.desk

    @judging.get("/status", summary="What waits for you")
    def status(request: Request) -> Status:
        judge = signed_in(request).name
        waiting = desk.waiting(judge)
        return Status(judge=judge, open=list(waiting.open), candidates=waiting.candidates)

    @judging.post("/next", summary="Get the open batch, or a new one of pending candidates")
    def next_batch(request: Request, wanted: Annotated[Wanted | None, Body()] = None) -> Next:
        visitor = signed_in(request)
        wanted = wanted or Wanted()
        if (wanted.experiment is not None or wanted.judge is not None) and not visitor.is_admin:
            raise HTTPException(
                403, "only admins can choose this, because an experiment's name might reveal what is judged"
            )
        return Next(batch=desk.next_batch(wanted.judge or visitor.name, wanted.experiment, wanted.items))

    @judging.get("/batches/{batch}", summary="Get a batch as a judge file, with the scores given so far")
    def file(request: Request, batch: str) -> dict[str, Any]:
        return desk.file(batch, signed_in(request).name)

    @judging.patch("/batches/{batch}/items/{slot}", summary="Store scores, flags or a note for one item")
    def save(request: Request, batch: str, slot: str, change: Change) -> Saved:
        given = change.model_dump(exclude_unset=True)
        return desk.save(batch, signed_in(request).name, slot, given)

    @judging.post(
        "/batches/{batch}/scores",
        summary="Hand in the batch: the scores stored so far, or a filled-in judge file",
        openapi_extra={
            "requestBody": {
                "description": "A judge file; without a body, the scores stored so far are used.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            }
        },
    )
    async def submit(
        request: Request,
        batch: str,
        partial: Annotated[bool, Query(description="Apply only the runs that are scored completely.")] = False,
    ) -> AppliedOut:
        judge = signed_in(request).name
        content = await _read(request, await run_in_threadpool(desk.max_file_bytes, batch, judge))
        if not content:
            return _applied_out(await run_in_threadpool(desk.submit, batch, judge))
        return _applied_out(await run_in_threadpool(desk.submit_file, batch, judge, content, partial))

    @judging.get("/batches/{batch}/report", summary="Get the result of a batch that was handed in")
    def report(request: Request, batch: str) -> AppliedOut:
        return _applied_out(desk.report(batch, signed_in(request).name))

    @judging.post("/batches/{batch}/accept", summary="Make a batch that is on hold count; for admins")
    def accept(batch: str, acceptance: Acceptance, admin: Admin) -> AppliedOut:
        return _applied_out(desk.accept(batch, admin.name, printable(acceptance.why, 400)))

    return judging


def callback_router(parts: Parts) -> APIRouter:
    """Return the router for callbacks, which are authenticated by their batch's key instead of a token."""
    called = APIRouter(prefix="/api/judging/callback", tags=["judging"])
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT_CALLBACKS)
    bodies = _BoundedBodies(_MAX_BODY_BYTES)
    waiting_bytes = 0

    @called.post(
        "/{batch}",
        summary="Deliver the scores of a webhook judge that answers later, signed with the batch's key",
        openapi_extra={
            "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
        },
        responses={401: {"description": "The signature is not valid, or too old"}},
    )
    async def callback(
        request: Request,
        batch: str,
        timestamp: Annotated[str, Header(alias=TIMESTAMP_HEADER)] = "",
        signature: Annotated[str, Header(alias=SIGNATURE_HEADER)] = "",
    ) -> AppliedOut:
        refused = HTTPException(401, "the signature is not valid for this batch, or too old")
        if not parts.desk.expects_calls(timestamp):
            raise refused
        nonlocal waiting_bytes
        body = await bodies.read(request)
        if waiting_bytes + len(body) > _MAX_BODY_BYTES:
            raise HTTPException(503, "too many requests are waiting; try again later", {"Retry-After": "10"})
        waiting_bytes += len(body)
        try:
            async with semaphore:
                applied = await run_in_threadpool(parts.desk.call_back, batch, timestamp, signature, body)
        finally:
            waiting_bytes -= len(body)
        if applied is None:
            raise refused
        return _applied_out(applied)

    return called


async def _read(request: Request, limit: int) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limit:
            raise BodyTooLarge(limit)
    return bytes(content)


class _BoundedBodies:
    """Reads request bodies from unauthenticated senders, at most `max_bytes` at a time.

    When there are more, the oldest unfinished request is refused.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._received: dict[asyncio.Timeout, int] = {}  # bytes so far, the oldest request first

    async def read(self, request: Request) -> bytes:
        content = bytearray()
        try:
            async with asyncio.timeout(None) as own:
                self._received[own] = 0
                async for chunk in request.stream():
                    content += chunk
                    if own in self._received:
                        self._received[own] = len(content)
                    while sum(self._received.values()) > self._max_bytes:
                        oldest = next(iter(self._received))
                        del self._received[oldest]
                        oldest.reschedule(0)  # a deadline in the past: it times out now
        except TimeoutError:
            raise HTTPException(
                503, "too much data is being sent at once; try again later", {"Retry-After": "10"}
            ) from None
        finally:
            self._received.pop(own, None)
        return bytes(content)


def _applied_out(applied: Applied) -> AppliedOut:
    values = {name: getattr(applied, name) for name in AppliedOut.model_fields if name != "drift"}
    return AppliedOut(**values, drift=applied.drift.as_data())
