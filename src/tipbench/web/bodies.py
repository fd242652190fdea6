"""Limits on request bodies: how large they are, by what is announced and by what comes, and how long they take."""

import asyncio
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.web.errors import Errors
from tipbench.web.paths import PathRules, longest_match

USUAL_LIMIT = 1_000_000
PAUSE_S = 10.0  # that a client may make while it sends a body
WHOLE_S = 120.0


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
