"""Middleware that stands before the router and may refuse: what it does not refuse goes on."""

from abc import ABC, abstractmethod

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


class Guard(ABC):
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": ""})  # nothing here speaks it
        else:
            refusal = self._refusal(Request(scope))
            await (refusal or self._app)(scope, receive, send)

    @abstractmethod
    def _refusal(self, request: Request) -> Response | None: ...
