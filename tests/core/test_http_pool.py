"""Connections are kept and shared, proxies are used, and whatever a server does, a request ends in time."""

import gzip
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server, socket

import pytest

from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tests.hostile_server import hostile_server
from tipbench.core import http_pool
from tipbench.core.http_pool import (
    BrokenResponse,
    HttpError,
    HttpPool,
    InvalidAddress,
    NotConnected,
    Response,
    ResponseTimeout,
    UnusableContent,
)

MAX_BYTES = 1_000_000
WITHIN_S = 0.25


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def ask(url: str, path: str = "/x", body: bytes | None = None, timeout_s: float = 5.0) -> Response:
    pool = HttpPool(url)
    try:
        return pool.request("GET" if body is None else "POST", path, body, max_bytes=MAX_BYTES, timeout_s=timeout_s)
    finally:
        pool.close()


class KeepingServer(ThreadingHTTPServer):
    """Keeps connections open, counts them, and closes them all on request."""

    daemon_threads = True

    def __init__(self) -> None:
        self.connections: list[socket] = []
        self.lines: list[str] = []
        self.headers: list[dict[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                server.connections.append(self.connection)

            def do_GET(self) -> None:
                server.lines.append(self.requestline)
                server.headers.append(dict(self.headers))
                self.send_response(403 if self.command == "CONNECT" else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_CONNECT = do_GET  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def drop_connections(self) -> None:
        for connection in self.connections:
            connection.shutdown(2)


@contextmanager
def keeping_server() -> Iterator[KeepingServer]:
    with KeepingServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_connection_is_kept_and_each_is_used_by_one_request_at_a_time() -> None:
    with keeping_server() as server:
        pool = HttpPool(server.url)

        def many(_: int) -> list[bytes]:
            return [pool.request("GET", "/x", max_bytes=9, timeout_s=5).content for _ in range(25)]

        assert many(0) == [b"{}"] * 25
        assert len(server.connections) == 1
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(many, range(8))) == [[b"{}"] * 25] * 8
        assert len(server.connections) <= 8
        assert len(server.lines) == 9 * 25
        pool.close()


def test_a_connection_that_the_server_closed_or_that_is_old_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with keeping_server() as server:
        pool = HttpPool(server.url)
        for number in range(1, 4):
            assert pool.request("GET", "/x", max_bytes=9, timeout_s=5).status_code == 200
            assert len(server.connections) == number
            server.drop_connections() if number == 1 else monkeypatch.setattr(http_pool, "_IDLE_S", 0)
            time.sleep(0.05)
        pool.close()


@pytest.mark.parametrize(
    ("manner", "says"), [("endless", "more than 1 MB"), ("gzip bomb", "more than 1 MB"), ("brotli", "'br', which was")]
)
def test_too_much_is_refused_with_little_memory(manner: str, says: str) -> None:
    with hostile_server(manner) as server:
        tracemalloc.start()
        try:
            with pytest.raises(UnusableContent, match=says):
                ask(server.url)
            client_and_server = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert server.sent < 20 * MAX_BYTES  # what lies in the sockets' buffers
    assert client_and_server < 30 * MAX_BYTES


@pytest.mark.parametrize("manner", ["endless header", "garbage"])
def test_what_is_not_http_is_not_repeated(manner: str) -> None:
    with hostile_server(manner) as server, pytest.raises(BrokenResponse, match="does not speak HTTP"):
        ask(server.url)
    assert server.sent < 20 * MAX_BYTES


@pytest.mark.parametrize("manner", ["drip", "drip in the header", "hang"])
def test_the_time_is_for_the_whole_answer(manner: str) -> None:
    with hostile_server(manner) as server:
        started = time.monotonic()
        with pytest.raises(ResponseTimeout):
            ask(server.url, timeout_s=WITHIN_S)
        assert time.monotonic() - started < WITHIN_S + 1.0


def test_the_time_counts_anew_for_each_request_of_a_connection() -> None:
    with hostile_server("drip on a used connection") as server:
        pool = HttpPool(server.url)
        assert pool.request("GET", "/", max_bytes=MAX_BYTES, timeout_s=WITHIN_S).json() == {}
        time.sleep(WITHIN_S)
        started = time.monotonic()
        with pytest.raises(ResponseTimeout):
            pool.request("GET", "/", max_bytes=MAX_BYTES, timeout_s=WITHIN_S)
        assert WITHIN_S * 0.9 < time.monotonic() - started < WITHIN_S + 1.0
        pool.close()


def test_a_server_that_takes_its_time_to_read_is_left() -> None:
    with create_server(("127.0.0.1", 0)) as listening:
        left = threading.Event()
        thread = threading.Thread(target=_read_slowly, args=(listening, left), daemon=True)
        thread.start()
        started = time.monotonic()
        with pytest.raises(ResponseTimeout):
            ask(f"http://127.0.0.1:{listening.getsockname()[1]}", body=b"x" * 20_000_000, timeout_s=WITHIN_S)
        assert time.monotonic() - started < WITHIN_S + 1.0
        left.set()
        thread.join()


def _read_slowly(listening: socket, left: threading.Event) -> None:
    connection, _ = listening.accept()
    with connection:
        while not left.wait(0.02):
            connection.recv(4_096)


def test_a_redirect_is_given_back_and_not_followed() -> None:
    with hostile_server("redirect") as server:
        assert ask(server.url).has_redirect_location
    assert server.asked == 1


def test_gzip_is_asked_for_and_unpacked(stand_in: StandIn) -> None:
    stand_in.on("/x", Reply(gzip.compress(b'{"a": 1}'), headers=(("Content-Encoding", "gzip"),)))
    assert ask(stand_in.url).json() == {"a": 1}
    assert stand_in.asked[0].headers["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize("reply", [Reply(drops=True), Reply({"fine": True}, cut=True)])
def test_a_connection_that_is_cut_off(stand_in: StandIn, reply: Reply) -> None:
    stand_in.on("/x", reply)
    with pytest.raises(BrokenResponse):
        ask(stand_in.url)


def test_nobody_listens() -> None:
    with pytest.raises(NotConnected, match="refused"):
        ask(free_address())


def test_a_server_without_tls_or_with_an_unknown_certificate(stand_in: StandIn) -> None:
    with pytest.raises(NotConnected, match="SSL"):
        ask(stand_in.url.replace("http:", "https:"))


@pytest.mark.parametrize(
    "url",
    ["http://host:port", "localhost:8080/v1", "ftp://host", "http://a b", "http://", "http://h:99999", "http://["],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(InvalidAddress):
        HttpPool(url)


def test_a_path_that_no_request_line_can_hold(stand_in: StandIn) -> None:
    stand_in.on("/a%20b/%C3%A9/x", Reply({}))
    assert ask(f"{stand_in.url}/a b/é/").status_code == 200
    with pytest.raises(HttpError):
        ask(stand_in.url, "/x\r\nHost: other")


def test_the_proxy_of_the_environment_is_asked_for_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with keeping_server() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//me:hidden@"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,inside.example")
        assert ask("http://somewhere.example:8080/v1").status_code == 200
        assert proxy.lines == ["GET http://somewhere.example:8080/v1/x HTTP/1.1"]
        assert proxy.headers[0]["Host"] == "somewhere.example:8080"
        assert proxy.headers[0]["Proxy-Authorization"].startswith("Basic ")
        assert "Authorization" not in proxy.headers[0]
        with pytest.raises(NotConnected):
            ask(free_address())  # not through the proxy
        assert len(proxy.lines) == 1


def test_tls_goes_through_the_proxy_in_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    with keeping_server() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:hidden@"))
        with pytest.raises(NotConnected, match="the proxy answered 403"):
            ask("https://somewhere.example/v1")
        assert proxy.lines == ["CONNECT somewhere.example:443 HTTP/1.1"]
        assert proxy.headers[0]["Proxy-Authorization"].startswith("Basic ")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_asked_within_the_time(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile_server("drip in the header") as proxy:
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy.url)
        started = time.monotonic()
        with pytest.raises(ResponseTimeout):
            ask(f"{scheme}://somewhere.example/", timeout_s=WITHIN_S)
        assert time.monotonic() - started < WITHIN_S + 1.0


def test_a_proxy_that_can_not_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(InvalidAddress):
        HttpPool("http://somewhere.example")
