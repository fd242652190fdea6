"""uvicorn with limits on connections, and with an end that a second signal can't break off.

The limits: how many connections there are, and how long a client may take to send a request or to read an answer.

uvicorn waits for the rest of a header for ever, and a server that runs out of file descriptors answers nobody. Here a
request has to come soon, and where there are too many connections, the oldest one without a whole request is closed.
"""

import asyncio
import os
import resource
import signal
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 10.0  # from the first byte, or the connection, to the end of the header
READING_S = 30.0  # that a client may go without reading anything of its answer
MOST_CONNECTIONS = 2_000
_BACKLOG = 512  # connections; as many are accepted before any is read from
_DESCRIPTORS = 4_096
_DESCRIPTORS_FOR_OTHERS = 256  # files, databases, child processes
_MESSAGE = (
    b'{"error":{"code":"request_timeout","message":"the request did not come within %d s","problems":[]}}\n' % REQUEST_S
)
_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_MESSAGE), _MESSAGE)
)


class Server(uvicorn.Server):
    """Ends tidily at the first signal; the second one changes nothing, the third ends it at once."""

    _signals = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals == 1:
            super().handle_exit(sig, frame)
        elif self._signals > 2:
            os._exit(128 + signal.SIGINT)


class GuardedProtocol(H11Protocol):
    """A connection. Used by one server in a process."""

    all_open: dict["GuardedProtocol", None] = {}  # noqa: RUF012 - shared by all connections, the oldest first
    most = MOST_CONNECTIONS
    _request_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None
    _unread = 0  # bytes of an answer when the clock was started

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.all_open[self] = None
        if len(self.all_open) > self.most:
            oldest = next((one for one in self.all_open if one.waits_for_client), self)
            oldest.transport.abort()
            self.all_open.pop(oldest, None)
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self.all_open.pop(self, None)
        self._request_timer = _cancelled(self._request_timer)
        self._reading_timer = _cancelled(self._reading_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_reading()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waits_for_client(self) -> bool:
        """Whether the client has not sent the whole of a request."""
        return not self.is_busy or self.conn.their_state is h11.SEND_BODY

    def _watch_request(self) -> None:
        """Start the clock while a request is incomplete and nobody works on it: its header, or a body left unread."""
        if self.is_busy:
            self._request_timer = _cancelled(self._request_timer)
        elif self._request_timer is None:
            self._request_timer = self.loop.call_later(REQUEST_S, self._give_up)

    def _watch_reading(self) -> None:
        """Start the clock while something of an answer waits to be read."""
        self._unread = self.transport.get_write_buffer_size()
        if self._unread and self._reading_timer is None:
            self._reading_timer = self.loop.call_later(READING_S, self._check_reading)

    def _check_reading(self) -> None:
        self._reading_timer = None
        before = self._unread
        if before and self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_reading()

    def _give_up(self) -> None:
        self._request_timer = None
        if self.is_busy or self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(_LATE)
        self.transport.close()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer, if there is one; returns None, to be kept in its place."""
    if timer is not None:
        timer.cancel()
    return None


def guard_options() -> dict[str, Any]:
    """Options for uvicorn. Raises the limit on open files, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    else:
        allowed = _DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    GuardedProtocol.most = min(MOST_CONNECTIONS, max(allowed - _DESCRIPTORS_FOR_OTHERS, allowed // 2))
    return {"http": GuardedProtocol, "backlog": _BACKLOG}
