"""Security headers of responses, the same-origin check, and limits on the size and duration of request bodies."""

import asyncio
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.web.errors import Errors
from tipbench.web.paths import PathRules, longest_match, matches_any

STRICT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_RAW_COMMON_HEADERS = [(name.lower().encode(), value.encode()) for name, value in _COMMON_HEADERS.items()]
_COMMON_NAMES = {name for name, _ in _RAW_COMMON_HEADERS}
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
DEFAULT_BODY_LIMIT = 1_000_000  # bytes
BODY_IDLE_S = 10.0  # the longest pause of a client while it sends a body
BODY_TOTAL_S = 120.0


class SecurityHeaders:
    """Middleware that adds security headers to every response; outermost, except for the access log."""

    def __init__(self, app: ASGIApp, rules: PathRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message), scope["path"], scope["scheme"])
            await send(message)

        await self._app(scope, receive, with_headers)

    def _add(self, headers: MutableHeaders, path: str, scheme: str) -> None:
        if any(name in _COMMON_NAMES for name, _ in headers.raw):
            headers.update(_COMMON_HEADERS)
        else:
            headers.raw.extend(_RAW_COMMON_HEADERS)
        pattern = longest_match(path, tuple(self._rules.policies))
        # Appended to any policy the response already has: a browser enforces both.
        headers.append("Content-Security-Policy", self._rules.policies[pattern] if pattern else STRICT_POLICY)
        if not matches_any(path, self._rules.static):
            headers["Cache-Control"] = "no-store"
        else:
            headers.setdefault("Cache-Control", "no-cache")  # cached, but revalidated on every use
        if scheme == "https":
            headers["Strict-Transport-Security"] = "max-age=31536000"


# The same-origin check, by headers that browsers set and scripts can't change.


def is_same_origin(scope: Scope) -> bool:
    """Check Sec-Fetch-Site, which proxies don't change, else Origin. False without either: no browser sent it."""
    headers = Headers(scope=scope)
    site = headers.getlist("sec-fetch-site")
    if site:
        return site == ["same-origin"]
    origin = headers.getlist("origin")
    return len(origin) == 1 and _names_host(origin[0], headers.get("host", ""), scope["scheme"])


def _names_host(origin: str, host: str, scheme: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    schemes = ("https",) if scheme == "https" else ("http", "https")  # TLS may be terminated by a proxy in front of us
    return parts.scheme in schemes and bool(host) and parts.netloc.lower() == host.lower()


# Limits on request bodies: their size, as announced and as received, and how long they take.


class BodyTooLarge(HTTPException):
    """Raised while the body is read if it exceeds its limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the request's body is too large; {limit:,} bytes is the limit here")


class BodyTooSlow(HTTPException):
    """Raised while the body is read if it takes too long."""

    def __init__(self) -> None:
        super().__init__(
            408,
            f"the request's body did not arrive: {BODY_IDLE_S:g} s without a byte, or {BODY_TOTAL_S:g} s in total, "
            "is too long",
            {"Connection": "close"},
        )


class BodyLimit:
    """Middleware that counts and times request bodies while they are read, without buffering them."""

    def __init__(self, app: ASGIApp, rules: PathRules, errors: Errors) -> None:
        self._app = app
        self._rules = rules
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        pattern = longest_match(scope["path"], tuple(self._rules.body_limits))
        limit = self._rules.body_limits[pattern] if pattern else DEFAULT_BODY_LIMIT
        request = Request(scope)
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and len(announced) < 20 and int(announced) <= limit:
            read, started, complete = 0, False, False
            deadline = time.monotonic() + BODY_TOTAL_S

            async def limited_receive() -> Message:
                nonlocal read, complete
                if complete:  # from now on, the only message is that the client has disconnected
                    return await receive()
                message = await _receive_in_time(receive, deadline)
                complete = not message.get("more_body", False)
                read += len(message.get("body", b""))
                if read > limit:
                    raise BodyTooLarge(limit)
                return message

            async def tracked_send(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await self._app(scope, limited_receive, tracked_send)
                return
            except (BodyTooLarge, BodyTooSlow) as error:
                if started:
                    raise
                refusal: HTTPException = error
        else:
            refusal = BodyTooLarge(limit)
        response = await self._errors.http_error(request, refusal)
        await response(scope, receive, send)


async def _receive_in_time(receive: Receive, deadline: float) -> Message:
    try:
        async with asyncio.timeout(min(BODY_IDLE_S, deadline - time.monotonic())):
            return await receive()
    except TimeoutError:
        raise BodyTooSlow from None
