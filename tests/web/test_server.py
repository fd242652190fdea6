"""A client that does not send its request, or does not read its answer, holds nobody up; workers share connections."""

import asyncio
import resource
import socket
import threading
import time
from collections.abc import Iterator, MutableSequence, Sequence
from contextlib import ExitStack, suppress

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from tipbench.web import server as server_module
from tipbench.web.server import GuardedProtocol, WorkerConnections, _SharedListener, guard_options

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Half: "
REQUEST_S = 0.25
MOST = 20


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """/slow takes its time, /large is more than sockets hold, everything else is answered before its body is read."""
    assert scope["type"] == "http"
    body = {"/large": b"y" * 20_000_000, "/some": b"y" * 60_000}.get(scope["path"], b"ok")
    if scope["path"] == "/slow":
        await asyncio.sleep(REQUEST_S * 3)
    if scope["path"] == "/body":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT_S", REQUEST_S)
    monkeypatch.setattr(server_module, "READ_TIMEOUT_S", REQUEST_S)
    monkeypatch.setattr(GuardedProtocol, "all_open", {})
    monkeypatch.setattr(GuardedProtocol, "max_connections", MOST)
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        config = uvicorn.Config(app, http=GuardedProtocol, lifespan="off", log_level="critical")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = server.force_exit = True
        thread.join()


def connect(port: int, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(sent)
    return connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes; a connection that was cut off gives nothing more."""
    received = b""
    with connection, suppress(ConnectionError):
        while piece := connection.recv(65_536):
            received += piece
    return received


def dripped_s(connection: socket.socket) -> float:
    """How long the server lets a client send byte by byte."""
    started = time.monotonic()
    with connection, suppress(ConnectionError):
        while time.monotonic() - started < 10:
            connection.sendall(b"x")
            time.sleep(0.05)
    return time.monotonic() - started


def test_half_a_header_is_told_that_it_took_too_long(port: int) -> None:
    started = time.monotonic()
    received = rest(connect(port, HALF))
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in received
    assert REQUEST_S * 0.9 < time.monotonic() - started < REQUEST_S + 2


def test_a_header_that_drips_has_no_more_time(port: int) -> None:
    assert dripped_s(connect(port, HALF)) < REQUEST_S + 2


def test_nothing_at_all_is_closed_without_a_word(port: int) -> None:
    assert rest(connect(port)) == b""


def test_the_next_request_of_a_connection_has_its_own_time(port: int) -> None:
    connection = connect(port)
    for _ in range(2):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while not received.endswith(b"ok"):
            received += connection.recv(65_536)
        time.sleep(REQUEST_S * 1.5)
    connection.sendall(HALF)
    assert rest(connection).startswith(b"HTTP/1.1 408 ")


def test_a_slow_answer_is_waited_for(port: int) -> None:
    assert httpx.get(f"http://127.0.0.1:{port}/slow").text == "ok"


def test_too_many_connections_close_the_oldest_that_sent_no_request(port: int) -> None:
    busy = connect(port, b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    body = connect(port, b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
    assert httpx.get(f"http://127.0.0.1:{port}/").text == "ok"  # by now the two before it were read
    idle = [connect(port, HALF) for _ in range(3 * MOST)]
    assert httpx.get(f"http://127.0.0.1:{port}/").text == "ok"
    assert rest(body) == b""
    assert rest(idle[0]) == b""  # cut off long before its time was over
    assert rest(idle[-1]).startswith(b"HTTP/1.1 408 ")
    assert rest(busy).endswith(b"ok")
    for connection in idle:
        connection.close()


def test_a_body_that_nobody_reads_does_not_hold_the_connection(port: int) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\nx"
    assert dripped_s(connect(port, request)) < REQUEST_S + 2


def test_an_answer_that_nobody_reads_is_given_up(port: int) -> None:
    connection = connect(port, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    time.sleep(REQUEST_S * 3)
    assert 0 < len(rest(connection)) < 20_000_000


def test_a_small_answer_that_nobody_reads_is_given_up_too(port: int) -> None:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    connection.connect(("127.0.0.1", port))
    for _ in range(100):
        connection.sendall(b"GET /some HTTP/1.1\r\nHost: x\r\n\r\n")
    time.sleep(REQUEST_S * 4)
    assert not GuardedProtocol.all_open
    connection.close()


def test_who_reads_slowly_and_steadily_gets_it_all(port: int) -> None:
    connection = connect(port, b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    received = 0
    started = time.monotonic()
    with connection:
        while piece := connection.recv(2_000_000):
            received += len(piece)
            time.sleep(0.03)
    assert received > 20_000_000
    assert time.monotonic() - started > REQUEST_S, "else it proves nothing"


@pytest.mark.parametrize("start", [HALF, b"GET /"])
def test_a_header_without_end_is_refused(port: int, start: bytes) -> None:
    connection = connect(port, start)
    with suppress(ConnectionError):
        for _ in range(100):
            connection.sendall(b"x" * 1_000)
    received = rest(connection)
    assert received.startswith(b"HTTP/1.1 400 ") or not received  # it may be cut off while we still send


def test_a_header_of_reasonable_size_is_read(port: int) -> None:
    assert httpx.get(f"http://127.0.0.1:{port}/", headers={"X-Long": "x" * 30_000}).text == "ok"


def test_headers_that_follow_a_body_are_ignored_however_many(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    complete = GuardedProtocol.on_message_complete

    def count(self: GuardedProtocol) -> None:
        seen.append(len(self.headers))
        complete(self)

    monkeypatch.setattr(GuardedProtocol, "on_message_complete", count)
    connection = connect(port, b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
    connection.sendall(b"Authorization: Bearer x\r\n" * 200 + b"\r\n")
    assert b"ok" in connection.recv(65_536)
    assert seen == [2]
    connection.close()


def test_the_limit_on_open_files_is_raised() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert guard_options()["http"] is GuardedProtocol
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(4_096, before[1])
        assert GuardedProtocol.max_connections <= min(4_096, before[1]) - 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class _Counted(asyncio.Protocol):
    """A connection of a worker that does nothing but count it, as GuardedProtocol does."""

    def __init__(self, counts: MutableSequence[int], worker: int, closed: MutableSequence[int]) -> None:
        self._counts, self._worker, self._closed = counts, worker, closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._counts[self._worker] += 1
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.append(self._worker)


async def _accepted(counts: MutableSequence[int], running: Sequence[int], connections: int) -> None:
    """Let these workers accept connections, all of which are tried one after the other."""
    closed: list[int] = []
    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        for worker in running:
            shared = _SharedListener(
                stack.enter_context(listener.dup()),
                lambda worker=worker: _Counted(counts, worker, closed),  # type: ignore[misc]
                WorkerConnections(counts, worker),
            )
            stack.callback(shared.close)
        for number in range(1, connections + 1):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            while len(closed) < number:
                await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("quickest_first", [(0, 1, 2), (2, 0, 1)])
def test_workers_get_equally_many_connections(quickest_first: tuple[int, ...]) -> None:
    counts = [0, 0, 0]
    asyncio.run(asyncio.wait_for(_accepted(counts, quickest_first, 30), 20))
    assert max(counts) - min(counts) <= 4, counts  # on a busy machine a head start may be over too soon


def test_a_worker_that_starts_again_gets_the_next_connections() -> None:
    counts = [20, 20, 0]
    asyncio.run(asyncio.wait_for(_accepted(counts, (0, 1, 2), 15), 20))
    assert counts[2] >= 11, counts


def test_connections_of_a_worker_that_hangs_go_to_the_others() -> None:
    counts = [7, 0]
    asyncio.run(asyncio.wait_for(_accepted(counts, (0,), 10), 20))
    assert counts == [17, 0]
