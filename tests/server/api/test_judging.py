"""The callback, which anybody may call: who can't sign costs nothing."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import FastAPI, HTTPException, Request

from tipbench.server.api.judging import _BoundedBodies, callback_router
from tipbench.server.api.parts import Parts
from tipbench.server.views.judging import JudgingDesk


class Call:
    """One call of the callback; `read` is how much of its body was asked for."""

    def __init__(self, desk: JudgingDesk, timestamp: float, chunks: int) -> None:
        self.status = 0
        self.read = 0
        self._chunks = chunks
        self._headers = [(b"x-tipbench-timestamp", b"%d" % timestamp), (b"x-tipbench-signature", b"sha256=00")]
        app = FastAPI()
        app.include_router(callback_router(cast(Parts, SimpleNamespace(desk=desk))))
        asyncio.run(app(self._scope, self._receive, self._send))

    @property
    def _scope(self) -> dict[str, Any]:
        path = "/api/judging/callback/b1"
        about = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        return {**about, "headers": self._headers, "http_version": "1.1", "scheme": "http", "root_path": ""}

    async def _receive(self) -> dict[str, Any]:
        self.read += 1
        return {"type": "http.request", "body": b"x", "more_body": self.read < self._chunks}

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)


def test_a_call_that_can_not_hold_is_refused_before_its_body_is_read(
    desk: JudgingDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_secret = Call(desk, time.time(), chunks=3)
    assert (without_secret.status, without_secret.read) == (401, 0)
    monkeypatch.setenv("TIPBENCH_JUDGE_SECRET", "s")
    too_old = Call(desk, time.time() - 3600, chunks=3)
    assert (too_old.status, too_old.read) == (401, 0)
    forged = Call(desk, time.time(), chunks=3)
    assert (forged.status, forged.read) == (401, 3)


class Body:
    """A request whose body comes in chunks; after the last it stalls, unless it is complete."""

    def __init__(self, *chunks: bytes, complete: bool = True) -> None:
        self._chunks = list(chunks)
        self._complete = complete

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        if not self._chunks:
            await asyncio.Event().wait()
        chunk = self._chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks) or not self._complete}

    @property
    def request(self) -> Request:
        return Request({"type": "http", "method": "POST", "headers": []}, self.receive)


def test_one_that_made_room_takes_none_from_another() -> None:
    async def call() -> None:
        arriving = _BoundedBodies(max_bytes=100)
        sizes = ((60, 10), (20,), (20, 10))
        bodies = [Body(*(b"x" * size for size in chunks), complete=False) for chunks in sizes]
        tasks = [asyncio.create_task(arriving.read(body.request)) for body in bodies]
        done, _ = await asyncio.wait(tasks, timeout=0.1)
        assert done == {tasks[0]}
        assert all(one.exception() for one in done)
        for one in tasks:
            one.cancel()
        await asyncio.wait(tasks)

    asyncio.run(call())


def test_bodies_that_stall_hold_nobody_up_and_little_memory() -> None:
    async def call() -> None:
        arriving = _BoundedBodies(max_bytes=1_000)
        stalled = [asyncio.create_task(arriving.read(Body(b"x" * 90, complete=False).request)) for _ in range(11)]
        await asyncio.sleep(0.01)
        assert await arriving.read(Body(b"a" * 50, b"b" * 50).request) == b"a" * 50 + b"b" * 50
        done, _ = await asyncio.wait(stalled, timeout=0.1)
        assert done == {stalled[0]}, "the oldest makes room"
        with pytest.raises(HTTPException) as caught:
            await stalled[0]
        assert (caught.value.status_code, caught.value.headers) == (503, {"Retry-After": "10"})
        for one in stalled[1:]:
            one.cancel()
        await asyncio.wait(stalled)
        assert await arriving.read(Body(b"x" * 1_000).request) == b"x" * 1_000

    asyncio.run(call())
