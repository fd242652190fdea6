"""uvicorn with limits on connections, which workers share, and a shutdown that a second signal can't abort.

Limited are the number of connections, and the time a client may take to send a request or to read a response.

uvicorn itself waits for the rest of a header forever, and a server without free file descriptors answers nobody. Here a
request has to arrive within seconds, and beyond the maximum number of connections the oldest one without a complete
request is closed.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable, MutableSequence
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
import uvloop  # noqa: F401 - uvicorn loads it by name; if it is missing, that is reported here
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_TIMEOUT_S = 10.0  # from the first byte, or the connection, to the end of the header
READ_TIMEOUT_S = 30.0  # how long a client may read nothing of its response
MAX_CONNECTIONS = 2_000
MAX_HEADER_BYTES = 65_536
_BACKLOG = 512  # connections that may be accepted before the first is read from
_HEAD_START_S = 0.002  # for workers that have fewer connections
_PAUSE_S = 0.1  # when the system has no more file descriptors
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
_log = logging.getLogger(__name__)


class WorkerConnections(NamedTuple):
    """How many connections each worker has, in memory that all share, and which of the workers this one is."""

    counts: MutableSequence[int]
    worker: int

    def set(self, count: int) -> None:
        self.counts[self.worker] = count

    def others_have_fewer(self) -> bool:
        return self.counts[self.worker] > min(self.counts)


class Server(uvicorn.Server):
    """Shuts down gracefully at the first signal, ignores the second, and exits immediately at the third."""

    _signals = 0

    def __init__(self, config: uvicorn.Config, connections: WorkerConnections | None = None) -> None:
        """`connections` are for one of several workers that share a listening socket."""
        super().__init__(config)
        self._connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._connections is None or not sockets:
            await super().startup(sockets)
            return
        await super().startup([])
        GuardedProtocol.shared_counts = self._connections
        self._connections.set(0)  # the one before may have been killed
        for one in sockets:
            shared = _SharedListener(one, self._protocol, self._connections)
            self.servers.append(shared)  # type: ignore[arg-type] # has what uvicorn calls

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals == 1:
            super().handle_exit(sig, frame)
        elif self._signals > 2:
            os._exit(128 + signal.SIGINT)


class _SharedListener:
    """Accepts connections on a socket that other processes accept from too, so that all have about equally many.

    The system wakes all of them for each connection, and the quickest takes it: often the same one, which then has all
    the work. So a worker that has more than another one waits for a moment.
    """

    def __init__(
        self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol], connections: WorkerConnections
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[Any]] = set()
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        self._loop.add_reader(listener, self._on_readable)

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = _cancel(self._pause)

    async def wait_closed(self) -> None:
        """Return at once: connections are uvicorn's."""

    def _on_readable(self) -> None:
        if self._connections.others_have_fewer():
            self._pause_for(_HEAD_START_S)
        else:
            self._accept()

    def _pause_for(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._on_readable)
        self._accept()

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another worker was quicker
            return
        except OSError as error:
            _log.error("can't accept a connection: %s", error)
            self._pause_for(_PAUSE_S)
            return
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, accepted))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)


class GuardedProtocol(HttpToolsProtocol):
    """A connection with limits. The limits are class attributes, so only one server per process can use it."""

    all_open: dict["GuardedProtocol", None] = {}  # noqa: RUF012 - shared by all connections; oldest first
    max_connections = MAX_CONNECTIONS
    shared_counts: WorkerConnections | None = None
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
        self._count()
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self.all_open.pop(self, None)
        self._count()
        self._request_timer = _cancel(self._request_timer)
        self._read_timer = _cancel(self._read_timer)
        super().connection_lost(exc)

    def _count(self) -> None:
        if self.shared_counts:
            self.shared_counts.set(len(self.all_open))

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
