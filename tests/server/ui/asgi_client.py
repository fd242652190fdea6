"""A client that calls an app in this process, without a port."""

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI


class Client:
    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def patch(self, path: str, **more: Any) -> httpx.Response:
        return self.request("PATCH", path, **more)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._request(method, path, **more))

    async def _request(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **more)
