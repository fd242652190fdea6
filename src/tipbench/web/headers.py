"""What a browser is told to trust, whether a request comes from our own pages, and how large and slow a body may be."""

import asyncio
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.web.errors import Errors
from tipbench.web.paths import PathRules, covered, longest_match

STRICT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
USUAL_LIMIT = 1_000_000
PAUSE_S = 10.0  # that a client may make while it sends a body
WHOLE_S = 120.0


class SecurityHeaders:
    """Middleware, outside of all that answers."""

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
        headers.update(_ALWAYS)
        looser = longest_match(path, tuple(self._rules.policies))
        # Added to what the answer has: of two policies, a browser keeps to both.
        headers.append("Content-Security-Policy", self._rules.policies[looser] if looser else STRICT_POLICY)
        if not covered(path, self._rules.static):
            headers["Cache-Control"] = "no-store"
        else:
            headers.setdefault("Cache-Control", "no-cache")  # kept, and asked for again whether it is still the same
        if scheme == "https":
            headers["Strict-Transport-Security"] = "max-age=31536000"


# Whether a request comes from one of our own pages, by what browsers say and scripts in them can't change.


def is_same_origin(scope: Scope) -> bool:
    """By Sec-Fetch-Site, which proxies leave alone; else by Origin. A request with neither is no browser's."""
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
    schemes = ("https",) if scheme == "https" else ("http", "https")  # https may end at a proxy in front of us
    return parts.scheme in schemes and bool(host) and parts.netloc.lower() == host.lower()


# Limits on request bodies: how large they are, by what is announced and by what comes, and how long they take.


class BodyTooLarge(HTTPException):
    """Raised to whoever reads the body."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the request's body is too large; {limit:,} bytes are the most that is taken here")


class BodyTooSlow(HTTPException):
    """Raised to whoever reads the body."""

    def __init__(self) -> None:
        super().__init__(
            408,
            f"the request's body did not come: {PAUSE_S:g} s without a byte, or {WHOLE_S:g} s in all, are too long",
            {"Connection": "close"},
        )


class BodyLimit:
    """Middleware. Bodies are counted and timed while they are read; none is kept here."""

    def __init__(self, app: ASGIApp, rules: PathRules, errors: Errors) -> None:
        self._app = app
        self._rules = rules
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        other = longest_match(scope["path"], tuple(self._rules.body_limits))
        limit = self._rules.body_limits[other] if other else USUAL_LIMIT
        request = Request(scope)
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and len(announced) < 20 and int(announced) <= limit:
            read, started, complete = 0, False, False
            until = time.monotonic() + WHOLE_S

            async def counted() -> Message:
                nonlocal read, complete
                if complete:  # what comes now is that the client has gone
                    return await receive()
                message = await _in_time(receive, until)
                complete = not message.get("more_body", False)
                read += len(message.get("body", b""))
                if read > limit:
                    raise BodyTooLarge(limit)
                return message

            async def watched(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await self._app(scope, counted, watched)
                return
            except (BodyTooLarge, BodyTooSlow) as error:
                if started:
                    raise
                refusal: HTTPException = error
        else:
            refusal = BodyTooLarge(limit)
        response = await self._errors.of_http(request, refusal)
        await response(scope, receive, send)


async def _in_time(receive: Receive, until: float) -> Message:
    try:
        async with asyncio.timeout(min(PAUSE_S, until - time.monotonic())):
            return await receive()
    except TimeoutError:
        raise BodyTooSlow from None
