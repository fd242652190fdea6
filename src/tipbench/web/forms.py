"""Plain HTML forms: url-encoded, small, and shown to come from our own pages."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request

from tipbench.web.authentication import NOT_FROM_HERE, is_csrf_token
from tipbench.web.bodies import USUAL_LIMIT

Fields = Mapping[str, Sequence[str]]
CSRF_FIELD = "csrf"
_MOST_FIELDS = 500


async def read_form(request: Request, limit: int) -> Fields:
    """The fields of a form's body of at most so many bytes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "a form is sent as application/x-www-form-urlencoded")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise HTTPException(413)
    try:
        text = body.decode("utf-8", "replace")
        return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError as error:
        raise HTTPException(400, f"a form has at most {_MOST_FIELDS} fields") from error


async def csrf_form(request: Request) -> Fields:
    """The fields of a plain form that brought the token of its session, in a field or in the header."""
    fields = dict(await read_form(request, USUAL_LIMIT))
    shown = fields.pop(CSRF_FIELD, [""])
    if request.state.session is not None and not request.state.csrf_shown and not is_csrf_token(request, shown[-1]):
        raise HTTPException(403, NOT_FROM_HERE)
    return fields


CsrfForm = Annotated[Fields, Depends(csrf_form)]
