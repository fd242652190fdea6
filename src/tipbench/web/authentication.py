"""Authentication of every request: who asks, and may they?

It stands before the router and knows the table of paths only, so nothing is answered that is not in the table: neither
a route that somebody forgot to protect, nor whether there is one.
"""

import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import quote, urlsplit

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from tipbench.core.errors import InvalidInput
from tipbench.core.names import check_shape
from tipbench.web.attempts import Attempts, TooManyAttempts
from tipbench.web.errors import Errors
from tipbench.web.headers import SAFE_METHODS, is_same_origin
from tipbench.web.hosts import Guard
from tipbench.web.paths import API, LOGIN, PathRules, covered, covers, is_plain, local_path
from tipbench.web.service_key import ServiceKey
from tipbench.web.sessions import Sessions, cookie_name
from tipbench.web.tokens import Grant, NameCheck, Tokens, Visitor, server_secret

CHALLENGE = {"WWW-Authenticate": "Bearer"}
TOO_MANY = "too many failed attempts from this address; try again in {} s"
CSRF_HEADER = "x-csrf-token"
_NOT_FOR_JUDGES = "this is for admins only"
NOT_FROM_HERE = "this did not come from one of this server's own pages; reload the page and try again"
_log = logging.getLogger(__name__)


# What a token is worth: asked by one middleware for servers with tokens and for services with one key.


class Credentials(Protocol):
    """Checks what visitors show."""

    @property
    def name(self) -> str:
        """What visitors know it as: token or key."""
        ...

    @property
    def sessions(self) -> Sessions | None:
        """The sessions of browsers, where there are any."""
        ...

    def grant_of(self, token: str, address: str) -> Grant | None:
        """Whose token it is, for somebody at this address; None for a wrong one. Raises TooManyAttempts."""
        ...


@dataclass(frozen=True)
class Access:
    """Tokens of an admin and of judges, with sessions for browsers."""

    tokens: Tokens
    sessions: Sessions
    attempts: Attempts
    name: str = "token"

    def grant_of(self, token: str, address: str) -> Grant | None:
        return self.attempts.tried(address, token, self.tokens.grant_of)


def open_access(
    home: Path, clock: Callable[[], float], given_admin: str = "", check_name: NameCheck = check_shape
) -> Access:
    """Over the files in the home's server folder, which are made where they are missing."""
    tokens = Tokens(home, clock, given_admin, check_name)
    return Access(tokens, Sessions(server_secret(home), tokens, clock), Attempts(clock))


@dataclass(frozen=True)
class KeyAccess:
    """The one key of a service whose visitors are programs; whoever has it may do everything."""

    key: ServiceKey
    attempts: Attempts
    name: str = "key"
    sessions: None = None

    def grant_of(self, token: str, address: str) -> Grant | None:
        return self.attempts.tried(address, token, lambda given: _EVERYTHING if self.key.fits(given) else None)


_EVERYTHING = Grant("", Visitor("admin", ""))


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


class Authentication(Guard):
    """Middleware. Leaves `visitor`, `session`, `csrf` and `csrf_shown` in `request.state`."""

    def __init__(self, app: ASGIApp, credentials: Credentials, rules: PathRules, errors: Errors) -> None:
        super().__init__(app)
        self._credentials = credentials
        self._rules = rules
        self._errors = errors

    def _refusal(self, request: Request) -> Response | None:
        request.scope.setdefault("state", {}).update(visitor=None, session=None, csrf="", csrf_shown=False)
        path: str = request.scope["path"]
        if not is_plain(request.scope):
            return self._errors.answer(request, 400, "this path can't be used; take the plain one")
        if self._rules.is_open(path):
            if request.method in SAFE_METHODS:  # nothing is checked here, so a cookie must not change anything
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
        sessions = self._credentials.sessions
        cookie = request.cookies.get(cookie_name(request.scope)) if sessions else None
        session = sessions.read(cookie) if sessions and cookie else None
        if sessions and session:
            request.state.session = session
            request.state.visitor = session.visitor
            request.state.csrf = sessions.csrf_token(session)

    def _refuse_bearer(self, request: Request) -> Response | None:
        """A token that is given has to be good, whatever else comes with it."""
        name = self._credentials.name
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
            message = f"the Authorization header should be 'Bearer' and the {name}, once"
            return self._errors.answer(request, 401, message, headers=CHALLENGE)
        try:
            grant = self._credentials.grant_of(token.strip(), client_address(request))
        except TooManyAttempts as error:
            message = TOO_MANY.format(error.wait_s)
            return self._errors.answer(request, 429, message, headers={"Retry-After": str(error.wait_s)})
        except (InvalidInput, OSError) as error:  # what is stored can't be read; the message may name files
            _log.error("nobody can be let in: %s", error)
            message = f"the server can't check any {name}, so nobody can be let in; its log says why"
            return self._errors.answer(request, 503, message)
        if grant is None:
            return self._errors.answer(request, 401, f"this {name} is not valid, or not any more", headers=CHALLENGE)
        request.state.visitor = grant.visitor
        return None

    def _unknown(self, request: Request) -> Response:
        if self._credentials.sessions is None or covers(API, request.scope["path"]):
            message = f"this needs a {self._credentials.name}; send it in the header 'Authorization: Bearer …'"
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


# For handlers: who asks. The middleware has decided already; these say so once more, and in the handler's own words.
SignedIn = Annotated[Visitor, Depends(signed_in)]
Admin = Annotated[Visitor, Depends(_admin)]
