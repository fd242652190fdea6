"""What all resources of the service share: JSON responses, strict parsing of bodies, and their dependencies."""

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic_core import from_json, to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.shadows.runner import Shadows
from tipbench.web.errors import JsonAnswer

_POSITION = re.compile(r"line (\d+) column (\d+)")
_NAN_OR_INFINITY = re.compile(rb"[:\[,]\s*-?(NaN|Infinity)\b")
_MESSAGES = {
    "recursion limit exceeded": "is nested too deeply",
    "number out of range": "has a number with too many digits",
}


def json_answer(data: dict[str, Any], status: int = 200) -> Response:
    """Return a JSON response. Only non-ASCII content can hold raw control characters; JsonAnswer escapes them."""
    content = to_json(data)
    if content.isascii():
        return Response(content, status, media_type="application/json")
    return JsonAnswer(data, status)


# Bodies are read by a fast parser that accepts only strict JSON: no NaN, no unbounded nesting.


class UnreadableBody(HTTPException):
    """The request's body is not JSON; the parser's message is translated into ours."""

    def __init__(self, body: bytes, why: str) -> None:
        position = _POSITION.search(why)
        what = next((message for start, message in _MESSAGES.items() if why.startswith(start)), "is not JSON")
        where = f" (line {position[1]}, column {position[2]})" if position else ""
        hint = "; JSON has no NaN or Infinity" if _NAN_OR_INFINITY.search(body) else ""
        super().__init__(422, f"the request's body {what}{where}{hint}")


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        try:
            return from_json(body, allow_inf_nan=False)
        except ValueError as error:
            raise UnreadableBody(body, str(error)) from None


class StrictRoute(APIRoute):
    """A route whose request bodies are parsed as strict JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict_handler(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict_handler


@dataclass(frozen=True)
class Parts:
    """What the resources work with."""

    recommender: Recommender
    policies: Mapping[str, Policy[Any]]  # the served ones, by the name in their paths
    shadows: Shadows
