"""Sessions: a signed cookie that names the token it was issued for.

The server stores only the sessions that were ended early. A cookie is valid until it expires, its token is revoked or
its user signs out, whichever comes first.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Scope

from tipbench.web.tokens import Grant, Tokens, Visitor

LIFETIME_S = 12 * 3600
_VERSION = "v1"


class Session(NamedTuple):
    """The session of a user who has signed in."""

    id: str
    visitor: Visitor
    expires_ms: int


class Sessions:
    """Issues and verifies session cookies, and the CSRF tokens that prove that a request comes from our own pages."""

    def __init__(self, secret: bytes, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._session_key = _mac(secret, "tipbench session")
        self._csrf_key = _mac(secret, "tipbench csrf")
        self._tokens = tokens
        self._clock = clock

    def begin(self, grant: Grant) -> str:
        """Return the cookie value of a new session for the holder of a token."""
        now = self._now_ms
        content = {
            "id": secrets.token_urlsafe(16),
            "token": grant.id,
            "role": grant.visitor.role,
            "name": grant.visitor.name,
            "issued_ms": now,
            "expires_ms": now + LIFETIME_S * 1000,
        }
        body = f"{_VERSION}.{_encode(json.dumps(content, separators=(',', ':')).encode())}"
        return f"{body}.{self._signature(body)}"

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None unless we signed it and it is still valid."""
        body, _, signature = cookie.rpartition(".")
        # Compare the text, before decoding anything: another base64 spelling of the same bytes is not the same cookie.
        if not hmac.compare_digest(self._signature(body).encode(), signature.encode("utf-8", "replace")):
            return None
        version, _, content = body.partition(".")
        if version != _VERSION:
            return None
        data = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        if not data["issued_ms"] - 60_000 <= self._now_ms < data["expires_ms"]:
            return None
        visitor = self._tokens.holder(data["token"])
        if visitor != Visitor(data["role"], data["name"]) or self._tokens.session_ended(data["id"]):
            return None
        return Session(data["id"], visitor, data["expires_ms"])

    def end(self, session: Session) -> None:
        self._tokens.end_session(session.id, session.expires_ms)

    def csrf_token(self, session: Session) -> str:
        """Return the CSRF token of a session, which our own pages send back and no other site can know."""
        return _encode(_mac(self._csrf_key, session.id))

    @property
    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _signature(self, body: str) -> str:
        return _encode(_mac(self._session_key, body))


def cookie_name(scope: Scope) -> str:
    """Return the name of this server's session cookie.

    Browsers send a cookie to all ports of a host, so the name contains the port. The prefix `__Host-` makes browsers
    reject such a cookie if it is set by a subdomain, over plain HTTP or for another path.
    """
    prefix = "__Host-" if is_secure(scope) else ""
    return f"{prefix}tipbench_session_{(scope.get('server') or ('', 0))[1]}"


def is_secure(scope: Scope) -> bool:
    return bool(scope["scheme"] == "https")


def set_cookie(response: Response, value: str, scope: Scope) -> None:
    response.set_cookie(cookie_name(scope), value, max_age=LIFETIME_S, **_attributes(scope))


def remove_cookie(response: Response, scope: Scope) -> None:
    response.delete_cookie(cookie_name(scope), **_attributes(scope))


def _attributes(scope: Scope) -> dict[str, Any]:
    return {"path": "/", "secure": is_secure(scope), "httponly": True, "samesite": "strict"}


def _mac(key: bytes, content: str) -> bytes:
    return hmac.new(key, content.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
