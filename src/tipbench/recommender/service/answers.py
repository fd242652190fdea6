"""Answers, many times a second."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from tipbench.web.answers import JsonAnswer


def told(data: dict[str, Any], status: int = 200) -> Response:
    """As JSON; what a terminal would obey is possible only where there is more than ASCII, and written out there."""
    content = to_json(data)
    if content.isascii():
        return Response(content, status, media_type="application/json")
    return JsonAnswer(data, status)
