"""A limit on request bodies, by what is announced and by what comes."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.web.errors import Errors
from tipbench.web.paths import PathRules, longest_match

USUAL_LIMIT = 1_000_000


class BodyTooLarge(HTTPException):
    """Raised to whoever reads the body."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the request's body is too large; {limit:,} bytes are the most that is taken here")


class BodyLimit:
    """Middleware. Bodies are counted while they are read; none is kept here."""

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
            read, started = 0, False

            async def counted() -> Message:
                nonlocal read
                message = await receive()
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
            except BodyTooLarge:
                if started:
                    raise
        too_large = BodyTooLarge(limit)
        response = await self._errors.of_http(request, too_large)
        await response(scope, receive, send)
