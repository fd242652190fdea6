"""What the server logs: a line a request, without its query, its headers or its body."""

import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.untrusted import printable

_log = logging.getLogger("tipbench.access")


class Printable(logging.Formatter):
    """What others wrote gets into tracebacks; none of it reaches a terminal as it is."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class AccessLog:
    """Middleware: method, path, status, milliseconds. uvicorn's own lines would have the query in them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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
            elapsed_ms = (time.perf_counter() - start) * 1000
            level = logging.DEBUG if not failed and _is_quiet(scope["method"], status) else logging.INFO
            _log.log(level, "%s %s %s %.0f ms", scope["method"], printable(scope["path"], 200), status, elapsed_ms)


def _is_quiet(method: str, status: str) -> bool:
    """Reading, done: pages ask every second how a job goes."""
    return method in ("GET", "HEAD") and status[:1] in "123"


def log_config() -> dict[str, Any]:
    """For uvicorn's `log_config`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": Printable, "fmt": "%(asctime)s %(levelname)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "tipbench": {"level": "INFO"},
            "uvicorn": {"level": "WARNING"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
            "httpx": {"level": "WARNING"},  # its INFO lines are whole addresses, queries included
        },
    }
