"""Signing in and out. The login page itself is rendered by the caller of `login_router`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tipbench.core.text import capital
from tipbench.web.attempts import TooManyAttempts
from tipbench.web.authentication import CROSS_ORIGIN, TOO_MANY_ATTEMPTS, Access, client_address, is_csrf_token
from tipbench.web.headers import DEFAULT_BODY_LIMIT, is_same_origin
from tipbench.web.paths import LOGIN, LOGOUT, local_path
from tipbench.web.sessions import remove_cookie, set_cookie

Fields = Mapping[str, Sequence[str]]
CSRF_FIELD = "csrf"
_MAX_FIELDS = 500
_MAX_LOGIN_BYTES = 8192
LoginPage = Callable[[Request, str, str], Response]  # of request, path to go to afterwards, error message


# Plain HTML forms: URL-encoded, limited in size, and protected by a CSRF token.


async def read_form(request: Request, limit: int) -> Fields:
    """Return the fields of a form. Raises HTTPException if it is not URL-encoded or larger than `limit` bytes."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise HTTPException(415, "send the form as application/x-www-form-urlencoded")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise HTTPException(413)
    try:
        text = body.decode("utf-8", "replace")
        return parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="replace")
    except ValueError as error:
        raise HTTPException(400, f"a form has at most {_MAX_FIELDS} fields") from error


async def csrf_form(request: Request) -> Fields:
    """Return a form's fields; raise HTTPException unless the session's CSRF token is in a field or the header."""
    fields = dict(await read_form(request, DEFAULT_BODY_LIMIT))
    tokens = fields.pop(CSRF_FIELD, [""])
    if request.state.session is not None and not request.state.csrf_shown and not is_csrf_token(request, tokens[-1]):
        raise HTTPException(403, CROSS_ORIGIN)
    return fields


CsrfForm = Annotated[Fields, Depends(csrf_form)]


# Login and logout.


def login_router(access: Access, page: LoginPage) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(LOGIN)
    async def show(request: Request, next: str = "/") -> Response:
        if request.state.visitor is not None:
            return RedirectResponse(local_path(next), 303)
        return page(request, local_path(next), "")

    @router.post(LOGIN)
    async def sign_in(request: Request) -> Response:
        if not is_same_origin(
            request.scope
        ):  # otherwise another site could sign a visitor in with a token of its choice
            raise HTTPException(403, CROSS_ORIGIN)
        fields = await read_form(request, _MAX_LOGIN_BYTES)
        wanted = local_path(fields.get("next", ["/"])[-1])
        token = fields.get("token", [""])[-1].strip()
        if not token:
            return _with_status(page(request, wanted, "Enter your token."), 422)
        try:
            grant = access.grant_of(token, client_address(request))
        except TooManyAttempts as error:
            message = TOO_MANY_ATTEMPTS.format(error.wait_s)
            response = _with_status(page(request, wanted, f"{capital(message)}."), 429)
            response.headers["Retry-After"] = str(error.wait_s)
            return response
        if grant is None:
            return _with_status(page(request, wanted, "This token is not valid or was revoked."), 401)
        response = RedirectResponse(wanted, 303)
        set_cookie(response, access.sessions.begin(grant), request.scope)
        return response

    @router.post(LOGOUT)
    async def sign_out(request: Request, fields: CsrfForm) -> Response:  # noqa: ARG001 - a dependency, for its CSRF check
        if request.state.session is not None:
            await run_in_threadpool(access.sessions.end, request.state.session)
        response = RedirectResponse(LOGIN, 303)
        remove_cookie(response, request.scope)
        return response

    return router


def _with_status(response: Response, status: int) -> Response:
    response.status_code = status
    return response
