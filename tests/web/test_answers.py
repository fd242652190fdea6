"""JSON can tell whatever a model wrote, and a terminal that shows it obeys nothing of it."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from tipbench.web.errors import JsonAnswer

WRITTEN = "half a smile \ud83d, \x1b[2J, \x9b2J, \u202eback\u2066, é, 😀"


class Said(BaseModel):
    text: str


@pytest.mark.parametrize("path", ["/model", "/data"])
def test_every_text_comes_whole_and_harmless(path: str) -> None:
    app = FastAPI(default_response_class=JsonAnswer)

    @app.get("/model")
    def model() -> Said:
        return Said.model_construct(text=WRITTEN)

    @app.get("/data")
    def data() -> dict[str, Any]:
        return {"text": WRITTEN}

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api.test") as client:
            return await client.get(path)

    answer = asyncio.run(asked())
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert json.loads(answer.content) == {"text": WRITTEN}
    told = answer.content.decode()
    assert "é, 😀" in told
    assert "\\u009b2J, \\u202eback\\u2066" in told
    assert not {"\x1b", "\x9b", "\u202e", "\u2066"} & set(told)
