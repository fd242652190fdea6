"""Server logging, as text or JSON: one line per request, without its query, headers or body. Requests have ids."""

import logging
import re
import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.core.untrusted import json_text, printable
from tipbench.web.metrics import UNMATCHED, Metrics

REQUEST_ID = "X-Request-ID"
_HEADER = REQUEST_ID.lower().encode()
_WELL_FORMED_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_REPEAT_INTERVAL_S = 60.0
_UNANSWERED = "-"  # in place of a status
_FIELDS = "fields"  # attribute of a record: what it says, by name
_request_id: ContextVar[str] = ContextVar("request_id", default="")
_log = logging.getLogger("tipbench.access")


def current_request_id() -> str:
    """Return the id of the request that is being answered; empty elsewhere."""
    return _request_id.get()


def is_successful_read(method: str, status: str) -> bool:
    """Return whether this is a successful GET or HEAD. Pages poll the progress of jobs every second."""
    return method in ("GET", "HEAD") and is_successful(method, status)


def is_successful(_: str, status: str) -> bool:
    return status[:1] in "123"


class PrintableFormatter(logging.Formatter):
    """Escapes control characters: tracebacks may contain untrusted text, which must not reach a terminal as it is."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := current_request_id():
            entry["request_id"] = request_id
        entry.update(getattr(record, _FIELDS, {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json_text(entry, indent=None)


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
    """Middleware that gives each request its id, and counts and logs it: method, path, status and milliseconds.

    uvicorn's own access log would include the query.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, quiet: Callable[[str, str], bool] = is_successful_read) -> None:
        """Requests for which `quiet(method, status)` is true are logged at DEBUG instead of INFO."""
        self._app = app
        self._metrics = metrics
        self._quiet = quiet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or secrets.token_hex(8)
        _request_id.set(request_id)  # until the end of this task, which is for this request alone
        status, start = _UNANSWERED, time.perf_counter()

        async def tracked_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                message["headers"] = [*message["headers"], (_HEADER, request_id.encode())]
                count()  # first, so that whoever has the answer finds it counted
            await send(message)

        def count() -> None:
            self._metrics.count_request(scope["method"], _route(scope), status, time.perf_counter() - start)

        failed = True
        try:
            await self._app(scope, receive, tracked_send)
            failed = False
        finally:
            if status == _UNANSWERED:
                count()
            level = logging.DEBUG if not failed and self._quiet(scope["method"], status) else logging.INFO
            if _log.isEnabledFor(level):
                _log_request(level, scope, status, (time.perf_counter() - start) * 1000)


def _given_id(scope: Scope) -> str:
    """Return the id that the client or a proxy gave, if it is well-formed; else an empty text."""
    given = [value for name, value in scope["headers"] if name == _HEADER]
    return given[0].decode() if len(given) == 1 and _WELL_FORMED_ID.fullmatch(given[0]) else ""


def _route(scope: Scope) -> str:
    """Return the template of the route that the router has found, which never has a value from the request."""
    path: str | None = getattr(scope.get("route"), "path", None)
    if path:
        return path
    if scope.get("root_path"):  # of what is mounted there
        return f"{scope['root_path']}/*"
    return scope["path"] if "endpoint" in scope and not scope.get("path_params") else UNMATCHED


def _log_request(level: int, scope: Scope, status: str, elapsed_ms: float) -> None:
    method, path = scope["method"], printable(scope["path"], 200)
    fields = {
        "method": method,
        "path": path,
        "status": int(status) if status.isdecimal() else None,
        "duration_ms": round(elapsed_ms, 3),
    }
    _log.log(level, "%s %s %s %.0f ms", method, path, status, elapsed_ms, extra={_FIELDS: fields})


def log_config(log_format: Literal["text", "json"] = "text") -> dict[str, Any]:
    """Return the logging configuration for uvicorn's `log_config`."""
    text = {"()": PrintableFormatter, "fmt": "%(asctime)s %(levelname)s %(message)s"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": JsonFormatter} if log_format == "json" else text},
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
