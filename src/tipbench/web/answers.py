"""Answers in JSON that hold whatever a model wrote."""

from typing import Any

from fastapi.responses import JSONResponse

from tipbench.core.untrusted import json_text


class JsonAnswer(JSONResponse):
    """What UTF-8 can't hold, as half a surrogate pair, and what a terminal would obey is written as ``\\uXXXX``."""

    def render(self, content: Any) -> bytes:
        return json_text(content, indent=None).encode()
