"""The gate that every request passes: who asks, and may they?

It stands before the router and knows the table of paths only, so nothing is answered that is not in the table: neither
a route that somebody forgot to protect, nor whether there is one.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote, urlsplit

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from tipbench.web.attempts import Attempts, TooManyAttempts
from tipbench.web.errors import Errors
from tipbench.web.headers import SAFE_METHODS, is_same_origin
from tipbench.web.hosts import Guard
from tipbench.web.paths import API, LOGIN, PathRules, covered, covers, is_plain, local_path
from tipbench.web.sessions import Sessions, cookie_name
from tipbench.web.tokens import Grant, Tokens, Visitor, server_secret

CHALLENGE = {"WWW-Authenticate": "Bearer"}
TOO_MANY = "too many failed attempts from this address; try again in {} s"
_Found = TypeVar("_Found")
CSRF_HEADER = "x-csrf-token"
_NOT_FOR_JUDGES = "this is for admins only"
NOT_FROM_HERE = "this did not come from one of this server's own pages; reload the page and try again"


# The token of a request, from its header to whoever can tell what it is worth.


def by_bearer(
    request: Request, errors: Errors, check: Callable[[str, str], _Found | None], name: str = "token"
) -> _Found | Response:
    """What the check finds for token and address, or the refusal. The header has to be there.

    `name`: what visitors know the token as.
    """
    given = request.headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        message = f"the Authorization header should be 'Bearer' and the {name}, once"
        return errors.answer(request, 401, message, headers=CHALLENGE)
    try:
        found = check(token.strip(), client_address(request))
    except TooManyAttempts as error:
        message = TOO_MANY.format(error.wait_s)
        return errors.answer(request, 429, message, headers={"Retry-After": str(error.wait_s)})
    if found is None:
        return errors.answer(request, 401, f"this {name} is not valid, or not any more", headers=CHALLENGE)
    return found


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


# All that it takes to know who is asking.


@dataclass(frozen=True)
class Access:
    tokens: Tokens
    sessions: Sessions
    attempts: Attempts

    def grant_of(self, token: str, address: str) -> Grant | None:
        """Whose token it is, for somebody at this address; raises TooManyAttempts."""
        return self.attempts.tried(address, token, self.tokens.grant_of)


def open_access(home: Path, clock: Callable[[], float], given_admin: str = "") -> Access:
    """Over the files in the home's server folder, which are made where they are missing."""
    tokens = Tokens(home, clock, given_admin)
    return Access(tokens, Sessions(server_secret(home), tokens, clock), Attempts(clock))


class Gate(Guard):
    """Middleware. Leaves `visitor`, `session`, `csrf` and `csrf_shown` in `request.state`."""

    def __init__(self, app: ASGIApp, access: Access, rules: PathRules, errors: Errors) -> None:
        super().__init__(app)
        self._access = access
        self._rules = rules
        self._errors = errors

    def _refusal(self, request: Request) -> Response | None:
        request.scope.setdefault("state", {}).update(visitor=None, session=None, csrf="", csrf_shown=False)
        path: str = request.scope["path"]
        if not is_plain(request.scope):
            return self._errors.answer(request, 400, "this path can't be used; take the plain one")
        if self._rules.is_open(path):
            if (
                request.method in SAFE_METHODS
            ):  # nothing is checked here, so a cookie must not be able to change anything
                self._read_cookie(request)
            return None
        if "authorization" in request.headers:
            refusal = self._refuse_bearer(request)
            if refusal:
                return refusal
        else:
            self._read_cookie(request)
        visitor: Visitor | None = request.state.visitor
        if visitor is None:
            return self._unknown(request)
        if not visitor.is_admin and not self._rules.is_for_judges(path):
            return self._errors.answer(request, 403, _NOT_FOR_JUDGES)
        return self._refuse_forgery(request)

    def _read_cookie(self, request: Request) -> None:
        cookie = request.cookies.get(cookie_name(request.scope))
        session = self._access.sessions.read(cookie) if cookie else None
        if session:
            request.state.session = session
            request.state.visitor = session.visitor
            request.state.csrf = self._access.sessions.csrf_token(session)

    def _refuse_bearer(self, request: Request) -> Response | None:
        """A token that is given has to be good, whatever else comes with it."""
        grant = by_bearer(request, self._errors, self._access.grant_of)
        if isinstance(grant, Response):
            return grant
        request.state.visitor = grant.visitor
        return None

    def _unknown(self, request: Request) -> Response:
        if covers(API, request.scope["path"]):
            message = "this needs a token; send it in the header 'Authorization: Bearer …'"
            return self._errors.answer(request, 401, message, headers=CHALLENGE)
        if request.headers.get("hx-request") == "true":
            current = _path_of(request.headers.get("hx-current-url", ""))
            headers = {**CHALLENGE, "HX-Redirect": _login_path(current)}
            return self._errors.answer(request, 401, "your session is over; sign in again", headers=headers)
        if request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(_login_path(_requested(request)), 303)
        return self._errors.answer(request, 401, "your session is over, or there was none; sign in", headers=CHALLENGE)

    def _refuse_forgery(self, request: Request) -> Response | None:
        """What a cookie allows, other sites' pages must not be able to ask for."""
        path: str = request.scope["path"]
        if request.state.session is None or request.method in SAFE_METHODS:
            return None
        if not is_same_origin(request.scope):
            return self._errors.answer(request, 403, NOT_FROM_HERE)
        if covered(path, self._rules.foreign):
            return None
        shown = request.headers.get(CSRF_HEADER)
        if shown is None and self._rules.is_form(path):
            return None
        if not is_csrf_token(request, shown or ""):
            return self._errors.answer(request, 403, NOT_FROM_HERE)
        request.state.csrf_shown = True
        return None


def is_csrf_token(request: Request, given: str) -> bool:
    return hmac.compare_digest(request.state.csrf.encode(), given.encode("utf-8", "replace"))


def csrf_token(request: Request) -> str:
    """For a page's meta tag and its forms' field `csrf`; empty where no cookie was used."""
    return str(request.state.csrf)


def _login_path(wanted: str) -> str:
    """The login page, with the way back."""
    back = local_path(wanted)
    return LOGIN if back == "/" else f"{LOGIN}?next={quote(back, safe='/')}"


def _requested(request: Request) -> str:
    """Path and query as they were sent: decoding would make another path of an encoded slash."""
    raw = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    query = request.scope["query_string"]
    return bytes(raw + (b"?" + query if query else b"")).decode("latin-1")


def _path_of(url: str) -> str:
    """An address without the server it is at."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def signed_in(request: Request) -> Visitor:
    """Who asks, on a path that is not open to everybody."""
    visitor: Visitor | None = request.state.visitor
    if visitor is None:
        raise HTTPException(401, "this needs a token", CHALLENGE)
    return visitor


def _admin(visitor: Annotated[Visitor, Depends(signed_in)]) -> Visitor:
    if not visitor.is_admin:
        raise HTTPException(403, _NOT_FOR_JUDGES)
    return visitor


# For handlers: who asks. The gate has decided already; these say so once more, and in the handler's own words.
SignedIn = Annotated[Visitor, Depends(signed_in)]
Admin = Annotated[Visitor, Depends(_admin)]
