"""Authenticates and authorizes every request.

It runs before the router and knows only the table of paths. So a route that somebody forgot to protect stays closed,
and unauthorized clients can't even find out whether it exists.
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
from tipbench.core.names import check_judge_name
from tipbench.core.settings import Settings
from tipbench.web.attempts import AttemptLimiter, TooManyAttempts
from tipbench.web.errors import Errors
from tipbench.web.headers import SAFE_METHODS, is_same_origin
from tipbench.web.hosts import Guard
from tipbench.web.paths import LOGIN, PROGRAMS, PathRules, is_unambiguous, local_path, matches_any
from tipbench.web.service_key import ServiceKey
from tipbench.web.sessions import Sessions, cookie_name
from tipbench.web.tokens import (
    Grant,
    NameCheck,
    Tokens,
    Visitor,
    check_configured_token,
    server_secret,
    token_digest,
)

CHALLENGE = {"WWW-Authenticate": "Bearer"}
TOO_MANY_ATTEMPTS = "too many failed attempts from this address; try again in {} s"
CSRF_HEADER = "x-csrf-token"
_ADMINS_ONLY = "this is for admins only"
CROSS_ORIGIN = "the request did not come from one of this server's pages; reload the page and try again"
_log = logging.getLogger(__name__)


# Credentials: one interface for servers with tokens and for services with a single key.


class Credentials(Protocol):
    """Checks the credentials of visitors."""

    @property
    def name(self) -> str:
        """What messages call a credential: token or key."""
        ...

    @property
    def sessions(self) -> Sessions | None:
        """The sessions of browsers; None for a service without any."""
        ...

    @property
    def metrics_token(self) -> str:
        """The configured token for metrics; empty if there is none."""
        ...

    def grant_of(self, token: str, address: str) -> Grant | None:
        """Return what the token grants; None if it is invalid. Raises TooManyAttempts, counted by address."""
        ...


@dataclass(frozen=True)
class Access:
    """Credentials of a server with tokens for an admin and judges, and sessions for browsers."""

    tokens: Tokens
    sessions: Sessions
    attempts: AttemptLimiter
    metrics_token: str = ""
    name: str = "token"

    def grant_of(self, token: str, address: str) -> Grant | None:
        return self.attempts.attempt(address, token, self.tokens.grant_of)


def open_access(
    home: Path,
    clock: Callable[[], float],
    admin_token: str = "",
    check_name: NameCheck = check_judge_name,
    metrics_token: str = "",
) -> Access:
    """Open the tokens and sessions in the home's server folder, creating missing files."""
    tokens = Tokens(home, clock, admin_token, check_name)
    return Access(tokens, Sessions(server_secret(home), tokens, clock), AttemptLimiter(clock), metrics_token)


@dataclass(frozen=True)
class KeyAccess:
    """Credentials of a service with a single key, which grants access to everything."""

    key: ServiceKey
    attempts: AttemptLimiter
    metrics_token: str = ""
    name: str = "key"
    sessions: None = None

    def grant_of(self, token: str, address: str) -> Grant | None:
        return self.attempts.attempt(address, token, lambda given: _FULL_GRANT if self.key.matches(given) else None)


_FULL_GRANT = Grant("", Visitor("admin", ""))


def metrics_token(settings: Settings) -> str:
    """Return the configured token for metrics, or an empty text; raise InvalidInput if it is too short."""
    name = "TIPBENCH_METRICS_TOKEN"
    token = settings.get(name)
    if token:
        check_configured_token(name, token)
    return token


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


class Authentication(Guard):
    """Middleware that authorizes requests and sets `visitor`, `session`, `csrf`, `csrf_shown` in `request.state`."""

    def __init__(self, app: ASGIApp, credentials: Credentials, rules: PathRules, errors: Errors) -> None:
        super().__init__(app)
        self._credentials = credentials
        self._rules = rules
        self._errors = errors

    def _refusal(self, request: Request) -> Response | None:
        request.scope.setdefault("state", {}).update(visitor=None, session=None, csrf="", csrf_shown=False)
        path: str = request.scope["path"]
        if not is_unambiguous(request.scope):
            return self._errors.answer(
                request, 400, "this path is ambiguous; write it without '.', '..', backslashes or repeated slashes"
            )
        if self._rules.is_open(path):
            if request.method in SAFE_METHODS:  # there is no CSRF check here, so a cookie must not authorize changes
                self._read_cookie(request)
            return None
        if self._has_metrics_token(request, path):
            return None
        if "authorization" in request.headers:
            refusal = self._refuse_bearer(request)
            if refusal:
                return refusal
        else:
            self._read_cookie(request)
        visitor: Visitor | None = request.state.visitor
        if visitor is None:
            return self._refuse_anonymous(request)
        if not visitor.is_admin and not self._rules.is_for_judges(path):
            return self._errors.answer(request, 403, _ADMINS_ONLY)
        return self._refuse_forgery(request)

    def _read_cookie(self, request: Request) -> None:
        sessions = self._credentials.sessions
        cookie = request.cookies.get(cookie_name(request.scope)) if sessions else None
        session = sessions.read(cookie) if sessions and cookie else None
        if sessions and session:
            request.state.session = session
            request.state.visitor = session.visitor
            request.state.csrf = sessions.csrf_token(session)

    def _has_metrics_token(self, request: Request, path: str) -> bool:
        """Return whether this asks for metrics with their token, which is no visitor's and means nothing elsewhere."""
        token = self._credentials.metrics_token
        if not token or not self._rules.is_for_metrics(request.method, path):
            return False
        given = request.headers.getlist("authorization")
        scheme, _, rest = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        fits = hmac.compare_digest(token_digest(b"", rest.strip()), token_digest(b"", token))
        return fits and scheme.lower() == "bearer"

    def _refuse_bearer(self, request: Request) -> Response | None:
        """Refuse an invalid Authorization header, whatever other credentials come with it."""
        name = self._credentials.name
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
            message = f"the Authorization header should be 'Bearer' and the {name}, once"
            return self._errors.answer(request, 401, message, headers=CHALLENGE)
        try:
            grant = self._credentials.grant_of(token.strip(), client_address(request))
        except TooManyAttempts as error:
            message = TOO_MANY_ATTEMPTS.format(error.wait_s)
            return self._errors.answer(request, 429, message, headers={"Retry-After": str(error.wait_s)})
        except (InvalidInput, OSError) as error:  # the stored credentials can't be read; the message may contain paths
            _log.error("nobody can log in: %s", error)
            message = f"the server can't check any {name}, so nobody can log in; its log says why"
            return self._errors.answer(request, 503, message)
        if grant is None:
            return self._errors.answer(request, 401, f"this {name} is not valid or was revoked", headers=CHALLENGE)
        request.state.visitor = grant.visitor
        return None

    def _refuse_anonymous(self, request: Request) -> Response:
        if self._credentials.sessions is None or matches_any(request.scope["path"], PROGRAMS):
            message = f"this needs a {self._credentials.name}; send it in the header 'Authorization: Bearer …'"
            return self._errors.answer(request, 401, message, headers=CHALLENGE)
        if request.headers.get("hx-request") == "true":
            current = _path_of(request.headers.get("hx-current-url", ""))
            headers = {**CHALLENGE, "HX-Redirect": _login_path(current)}
            return self._errors.answer(request, 401, "your session has expired; log in again", headers=headers)
        if request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(_login_path(_requested_path(request)), 303)
        return self._errors.answer(
            request, 401, "your session has expired, or you have not logged in; log in", headers=CHALLENGE
        )

    def _refuse_forgery(self, request: Request) -> Response | None:
        """Refuse cross-site request forgery: changes that are authorized by a cookie, from a page of another site."""
        path: str = request.scope["path"]
        if request.state.session is None or request.method in SAFE_METHODS:
            return None
        if not is_same_origin(request.scope):
            return self._errors.answer(request, 403, CROSS_ORIGIN)
        if matches_any(path, self._rules.foreign):
            return None
        token = request.headers.get(CSRF_HEADER)
        if token is None and self._rules.is_form(path):
            return None
        if not is_csrf_token(request, token or ""):
            return self._errors.answer(request, 403, CROSS_ORIGIN)
        request.state.csrf_shown = True
        return None


def is_csrf_token(request: Request, token: str) -> bool:
    return hmac.compare_digest(request.state.csrf.encode(), token.encode("utf-8", "replace"))


def csrf_token(request: Request) -> str:
    """Return the CSRF token for a page's meta tag and its forms' field `csrf`; empty without a session."""
    return str(request.state.csrf)


def _login_path(wanted: str) -> str:
    """Return the path of the login page, which redirects to `wanted` after signing in."""
    back = local_path(wanted)
    return LOGIN if back == "/" else f"{LOGIN}?next={quote(back, safe='/')}"


def _requested_path(request: Request) -> str:
    """Return path and query as they were sent: decoding would turn an encoded slash into another path."""
    raw = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    query = request.scope["query_string"]
    return bytes(raw + (b"?" + query if query else b"")).decode("latin-1")


def _path_of(url: str) -> str:
    """Return path and query of a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def signed_in(request: Request) -> Visitor:
    """Return the visitor, on a path that is not open to everybody; raise HTTPException (401) if there is none."""
    visitor: Visitor | None = request.state.visitor
    if visitor is None:
        raise HTTPException(401, "this needs a token", CHALLENGE)
    return visitor


def _admin(visitor: Annotated[Visitor, Depends(signed_in)]) -> Visitor:
    if not visitor.is_admin:
        raise HTTPException(403, _ADMINS_ONLY)
    return visitor


# Dependencies for handlers. The middleware has checked already; these check again and document it in the signature.
SignedIn = Annotated[Visitor, Depends(signed_in)]
Admin = Annotated[Visitor, Depends(_admin)]
