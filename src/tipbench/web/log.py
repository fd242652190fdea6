"""What the server logs: a line a request, without its query, its headers or its body."""

import logging
import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.core.untrusted import printable

_EVERY_S = 60.0
_log = logging.getLogger("tipbench.access")


def is_reading_done(method: str, status: str) -> bool:
    """Pages ask every second how a job goes."""
    return method in ("GET", "HEAD") and is_done(method, status)


def is_done(_: str, status: str) -> bool:
    return status[:1] in "123"


class Printable(logging.Formatter):
    """What others wrote gets into tracebacks; none of it reaches a terminal as it is."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class RateLimitedLogFilter(logging.Filter):
    """The same text once a minute: out of file handles, asyncio says so tens of thousands of times a second."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._last = ""
        self._next = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), self._now()
        if text == self._last and now < self._next:
            return False
        self._last, self._next = text, now + _EVERY_S
        return True


class AccessLog:
    """Middleware: method, path, status, milliseconds. uvicorn's own lines would have the query in them."""

    def __init__(self, app: ASGIApp, quiet: Callable[[str, str], bool] = is_reading_done) -> None:
        """Quiet requests, by method and status, have their lines at DEBUG."""
        self._app = app
        self._quiet = quiet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, start = "-", time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        failed = True
        try:
            await self._app(scope, receive, watched)
            failed = False
        finally:
            level = logging.DEBUG if not failed and self._quiet(scope["method"], status) else logging.INFO
            if _log.isEnabledFor(level):
                elapsed_ms = (time.perf_counter() - start) * 1000
                _log.log(level, "%s %s %s %.0f ms", scope["method"], printable(scope["path"], 200), status, elapsed_ms)


def log_config() -> dict[str, Any]:
    """For uvicorn's `log_config`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": Printable, "fmt": "%(asctime)s %(levelname)s %(message)s"}},
        "filters": {"seldom": {"()": RateLimitedLogFilter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "tipbench": {"level": "INFO"},
            "asyncio": {"filters": ["seldom"]},
            "uvicorn": {"level": "WARNING"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
            "httpx": {"level": "WARNING"},  # its INFO lines are whole addresses, queries included
        },
    }
