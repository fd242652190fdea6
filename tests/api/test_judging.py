"""The callback, which anybody may call: who can't sign costs nothing."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import FastAPI

from tipbench.admin.judging import JudgingDesk
from tipbench.api.judging import callback_router
from tipbench.api.parts import Parts


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
