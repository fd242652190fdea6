"""Server logging: one line per request, without its query, headers or body."""

import logging
import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.core.untrusted import printable

_REPEAT_INTERVAL_S = 60.0
_log = logging.getLogger("tipbench.access")


def is_successful_read(method: str, status: str) -> bool:
    """Return whether this is a successful GET or HEAD. Pages poll the progress of jobs every second."""
    return method in ("GET", "HEAD") and is_successful(method, status)


def is_successful(_: str, status: str) -> bool:
    return status[:1] in "123"


class PrintableFormatter(logging.Formatter):
    """Escapes control characters: tracebacks may contain untrusted text, which must not reach a terminal as it is."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class RateLimitedLogFilter(logging.Filter):
    """Lets a repeated message through once a minute: an event loop may log the same thousands of times a second."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._last = ""
        self._next = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), self._now()
        if text == self._last and now < self._next:
            return False
        self._last, self._next = text, now + _REPEAT_INTERVAL_S
        return True


class AccessLog:
    """Middleware that logs method, path, status and milliseconds. uvicorn's own access log would include the query."""

    def __init__(self, app: ASGIApp, quiet: Callable[[str, str], bool] = is_successful_read) -> None:
        """Requests for which `quiet(method, status)` is true are logged at DEBUG instead of INFO."""
        self._app = app
        self._quiet = quiet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, start = "-", time.perf_counter()

        async def tracked_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        failed = True
        try:
            await self._app(scope, receive, tracked_send)
            failed = False
        finally:
            level = logging.DEBUG if not failed and self._quiet(scope["method"], status) else logging.INFO
            if _log.isEnabledFor(level):
                elapsed_ms = (time.perf_counter() - start) * 1000
                _log.log(level, "%s %s %s %.0f ms", scope["method"], printable(scope["path"], 200), status, elapsed_ms)


def log_config() -> dict[str, Any]:
    """Return the logging configuration for uvicorn's `log_config`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": PrintableFormatter, "fmt": "%(asctime)s %(levelname)s %(message)s"}},
        "filters": {"rate_limit": {"()": RateLimitedLogFilter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "tipbench": {"level": "INFO"},
            "asyncio": {"filters": ["rate_limit"]},
            "uvicorn": {"level": "WARNING"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
            "httpx": {"level": "WARNING"},  # its INFO lines contain whole URLs, including queries
        },
    }
