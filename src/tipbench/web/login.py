"""Signing in and out. The page itself is drawn by whoever brings the look."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tipbench.web.attempts import TooManyAttempts
from tipbench.web.authentication import NOT_FROM_HERE, TOO_MANY, Access, client_address, is_csrf_token
from tipbench.web.headers import USUAL_LIMIT, is_same_origin
from tipbench.web.paths import LOGIN, LOGOUT, local_path
from tipbench.web.sessions import remove_cookie, set_cookie

Fields = Mapping[str, Sequence[str]]
CSRF_FIELD = "csrf"
_MOST_FIELDS = 500
_LONGEST_FORM = 8192
LoginPage = Callable[[Request, str, str], Response]


# Plain HTML forms: url-encoded, small, and shown to come from our own pages.


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


# request, where to go afterwards, what was wrong


def login_router(access: Access, page: LoginPage) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(LOGIN)
    async def show(request: Request, next: str = "/") -> Response:
        if request.state.visitor is not None:
            return RedirectResponse(local_path(next), 303)
        return page(request, local_path(next), "")

    @router.post(LOGIN)
    async def sign_in(request: Request) -> Response:
        if not is_same_origin(request.scope):  # else another site could sign somebody in as its own judge
            raise HTTPException(403, NOT_FROM_HERE)
        fields = await read_form(request, _LONGEST_FORM)
        wanted = local_path(fields.get("next", ["/"])[-1])
        token = fields.get("token", [""])[-1].strip()
        if not token:
            return _refused(page(request, wanted, "Give your token."), 422)
        try:
            grant = access.grant_of(token, client_address(request))
        except TooManyAttempts as error:
            told = TOO_MANY.format(error.wait_s)
            response = _refused(page(request, wanted, f"{told[0].upper()}{told[1:]}."), 429)
            response.headers["Retry-After"] = str(error.wait_s)
            return response
        if grant is None:
            return _refused(page(request, wanted, "This token is not valid, or not any more."), 401)
        response = RedirectResponse(wanted, 303)
        set_cookie(response, access.sessions.begin(grant), request.scope)
        return response

    @router.post(LOGOUT)
    async def sign_out(request: Request, fields: CsrfForm) -> Response:  # noqa: ARG001 - asked for to be checked
        if request.state.session is not None:
            await run_in_threadpool(access.sessions.end, request.state.session)
        response = RedirectResponse(LOGIN, 303)
        remove_cookie(response, request.scope)
        return response

    return router


def _refused(response: Response, status: int) -> Response:
    response.status_code = status
    return response
