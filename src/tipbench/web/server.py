"""uvicorn with limits on connections, and with a shutdown that a second signal can't abort.

Limited are the number of connections, and the time a client may take to send a request or to read a response.

uvicorn itself waits for the rest of a header forever, and a server without free file descriptors answers nobody. Here a
request has to arrive within seconds, and beyond the maximum number of connections the oldest one without a complete
request is closed.
"""

import asyncio
import os
import resource
import signal
from types import FrameType
from typing import Any

import uvicorn
import uvloop  # noqa: F401 - uvicorn loads it by name; if it is missing, that is reported here
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_TIMEOUT_S = 10.0  # from the first byte, or the connection, to the end of the header
READ_TIMEOUT_S = 30.0  # how long a client may read nothing of its response
MAX_CONNECTIONS = 2_000
MAX_HEADER_BYTES = 65_536
_BACKLOG = 512  # connections that may be accepted before the first is read from
_DESCRIPTORS = 4_096
_DESCRIPTORS_FOR_OTHERS = 256  # files, databases, child processes
_TIMEOUT_BODY = (
    b'{"error":{"code":"request_timeout","message":"the request did not come within %d s","problems":[]}}\n'
    % REQUEST_TIMEOUT_S
)
_TIMEOUT_RESPONSE = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_TIMEOUT_BODY), _TIMEOUT_BODY)
)


class Server(uvicorn.Server):
    """Shuts down gracefully at the first signal, ignores the second, and exits immediately at the third."""

    _signals = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals == 1:
            super().handle_exit(sig, frame)
        elif self._signals > 2:
            os._exit(128 + signal.SIGINT)


class GuardedProtocol(HttpToolsProtocol):
    """A connection with limits. The limits are class attributes, so only one server per process can use it."""

    all_open: dict["GuardedProtocol", None] = {}  # noqa: RUF012 - shared by all connections; oldest first
    max_connections = MAX_CONNECTIONS
    _request_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _unread = 0  # bytes of the response still unread when the timer was started
    _in_header = False
    _header_bytes = 0  # of a header that is not complete yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.all_open[self] = None
        if len(self.all_open) > self.max_connections:
            oldest = next((one for one in self.all_open if one.waits_for_client), self)
            oldest.transport.abort()
            self.all_open.pop(oldest, None)
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self.all_open.pop(self, None)
        self._request_timer = _cancel(self._request_timer)
        self._read_timer = _cancel(self._read_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_header:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response(f"The request's header has more than {MAX_HEADER_BYTES} bytes.")
        self._watch_request()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_header = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_header:  # otherwise it follows the body, where nobody expects one
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_header, self._header_bytes = False, 0
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_read()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_read()

    @property
    def is_busy(self) -> bool:
        """Return whether a request is being processed."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waits_for_client(self) -> bool:
        """Return whether the client has yet to send (the rest of) a request."""
        return not self.is_busy or self.cycle.more_body

    def _watch_request(self) -> None:
        """Start the timer while a request is incomplete and not being processed: its header, or a body left unread."""
        if self.is_busy:
            self._request_timer = _cancel(self._request_timer)
        elif self._request_timer is None:
            self._request_timer = self.loop.call_later(REQUEST_TIMEOUT_S, self._time_out)

    def _watch_read(self) -> None:
        """Start the timer while part of a response is waiting to be read."""
        self._unread = self.transport.get_write_buffer_size()
        if self._unread and self._read_timer is None:
            self._read_timer = self.loop.call_later(READ_TIMEOUT_S, self._check_read)

    def _check_read(self) -> None:
        self._read_timer = None
        before = self._unread
        if before and self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_read()

    def _time_out(self) -> None:
        self._request_timer = None
        if self.is_busy or self.transport.is_closing():
            return
        if self._in_header:
            self.transport.write(_TIMEOUT_RESPONSE)
        self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel the timer, if there is one; return None, to be assigned in its place."""
    if timer is not None:
        timer.cancel()
    return None


def guard_options() -> dict[str, Any]:
    """Return options for uvicorn. Also raises the limit on open files, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    else:
        allowed = _DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    GuardedProtocol.max_connections = min(MAX_CONNECTIONS, max(allowed - _DESCRIPTORS_FOR_OTHERS, allowed // 2))
    return {"http": GuardedProtocol, "loop": "uvloop", "backlog": _BACKLOG}
