"""The direct way of a well-formed request to its endpoint: one parse, one validation, no thread but for the disk.

FastAPI's own way takes several times as long as choosing a tip. Whatever is not well-formed goes that way, so that all
error responses come from one place, and so does everything that changes no state.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, get_type_hints

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.recommender.service.executors import Executor

_JSON = re.compile(rb"application/json(; ?charset=utf-8)?", re.IGNORECASE)


class DirectEndpoint(NamedTuple):
    route: APIRoute
    model: type[BaseModel]
    function: Callable[[Any], Response]


def direct_endpoints(router: APIRouter) -> dict[str, DirectEndpoint]:
    """Return the router's endpoints by path. Each takes one model, the body, and returns a response."""
    endpoints = {}
    for route in router.routes:
        assert isinstance(route, APIRoute)
        (model,) = (kind for name, kind in get_type_hints(route.endpoint).items() if name != "return")
        endpoints[route.path] = DirectEndpoint(route, model, route.endpoint)
    return endpoints


class DirectRoutes:
    """Middleware, the innermost one: it answers POST requests of these paths, and passes on all others."""

    def __init__(
        self, app: ASGIApp, fastapi: FastAPI, endpoints: Mapping[str, DirectEndpoint], executor: Executor
    ) -> None:
        self._app = app
        self._fastapi = fastapi
        self._endpoints = endpoints
        self._executor = executor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if endpoint is None or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body", False):
            messages.append(await receive())
        body = b"".join([message.get("body", b"") for message in messages])
        try:
            if b"NaN" in body or b"Infinity" in body:  # which pydantic reads as numbers
                raise ValueError("this may not be JSON")
            data = endpoint.model.model_validate_json(body)
        except ValueError:
            await self._app(scope, _replayed(messages, receive), send)
            return
        scope["route"] = endpoint.route  # as the router does
        response = await self._respond(scope, partial(endpoint.function, data))
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, call: Callable[[], Response]) -> Response:
        try:
            return await self._executor.run(call)
        except Exception as error:
            for kind in type(error).__mro__:
                handler = self._fastapi.exception_handlers.get(kind)
                if handler:
                    response: Response = await handler(Request(scope), error)  # type: ignore[misc]
                    return response
            raise


def _is_json(scope: Scope) -> bool:
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(types) == 1 and _JSON.fullmatch(types[0]) is not None


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    """Return a `receive` that repeats messages which were received already."""
    left = iter(messages)

    async def replay() -> Message:
        return next(left, None) or await receive()

    return replay
