"""What all resources of the service share: JSON answers, strict reading of bodies, and the parts they work with."""

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

_PLACE = re.compile(r"line (\d+) column (\d+)")
_NO_NUMBER = re.compile(rb"[:\[,]\s*-?(NaN|Infinity)\b")
_WORDS = {
    "recursion limit exceeded": "is nested too deeply",
    "number out of range": "has a number with too many digits",
}


def json_answer(data: dict[str, Any], status: int = 200) -> Response:
    """As JSON; what a terminal would obey is possible only where there is more than ASCII, and written out there."""
    content = to_json(data)
    if content.isascii():
        return Response(content, status, media_type="application/json")
    return JsonAnswer(data, status)


# Bodies are read by a parser that is quick and knows nothing but JSON: no NaN, no nesting without end.


class Unreadable(HTTPException):
    """A body that is no JSON, told in our words."""

    def __init__(self, body: bytes, why: str) -> None:
        place = _PLACE.search(why)
        what = next((words for start, words in _WORDS.items() if why.startswith(start)), "is not JSON")
        where = f" (line {place[1]}, column {place[2]})" if place else ""
        hint = "; NaN and Infinity are no numbers there" if _NO_NUMBER.search(body) else ""
        super().__init__(422, f"the request's body {what}{where}{hint}")


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        try:
            return from_json(body, allow_inf_nan=False)
        except ValueError as error:
            raise Unreadable(body, str(error)) from None


class StrictRoute(APIRoute):
    """Its handlers' bodies are read so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strictly


# What the service is made of.


@dataclass(frozen=True)
class Parts:
    recommender: Recommender
    policies: Mapping[str, Policy[Any]]  # those that are served, by the names in their paths
    shadows: Shadows
