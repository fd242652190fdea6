"""Whatever a server answers, `fetch` ends in time, with few bytes in memory."""

import gzip
import threading
import time
import tracemalloc
from collections.abc import Iterator
from socket import create_server, socket

import httpx
import pytest

from tests.bench.engines.stand_in import Reply, StandIn
from tests.hostile_server import hostile_server
from tipbench.core.http import UnusableAnswer, fetch, open_client

MOST_BYTES = 1_000_000
WITHIN_S = 0.25


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


def ask(url: str, **arguments: object) -> httpx.Response:
    with open_client(timeout=5.0) as client:
        return fetch(client, "GET", url, max_bytes=MOST_BYTES, total_timeout_s=WITHIN_S, **arguments)


@pytest.mark.parametrize(
    ("manner", "says"), [("endless", "more than 1 MB"), ("gzip bomb", "more than 1 MB"), ("brotli", "'br', which was")]
)
def test_too_much_is_refused_with_little_memory(manner: str, says: str) -> None:
    with hostile_server(manner) as server:
        tracemalloc.start()
        try:
            with pytest.raises(UnusableAnswer, match=says):
                ask(server.url)
            client_and_server = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert server.sent < 20 * MOST_BYTES  # what lies in the sockets' buffers
    assert client_and_server < 30 * MOST_BYTES


def test_an_endless_header_is_cut_off() -> None:
    with hostile_server("endless header") as server, pytest.raises(httpx.RemoteProtocolError):
        ask(server.url)
    assert server.sent < 20 * MOST_BYTES


@pytest.mark.parametrize("manner", ["drip", "drip in the header", "hang"])
def test_the_time_is_for_the_whole_answer(manner: str) -> None:
    with hostile_server(manner) as server:
        started = time.monotonic()
        with pytest.raises(httpx.TimeoutException):
            ask(server.url)
        assert time.monotonic() - started < WITHIN_S + 1.0


def test_the_time_counts_anew_for_each_request_of_a_connection() -> None:
    with hostile_server("drip on a used connection") as server, open_client(timeout=5.0) as client:
        first = fetch(client, "GET", server.url, max_bytes=MOST_BYTES, total_timeout_s=WITHIN_S)
        assert first.json() == {}
        time.sleep(WITHIN_S)
        started = time.monotonic()
        with pytest.raises(httpx.ReadTimeout):
            fetch(client, "GET", server.url, max_bytes=MOST_BYTES, total_timeout_s=WITHIN_S)
        assert WITHIN_S * 0.9 < time.monotonic() - started < WITHIN_S + 1.0
        assert server.asked == 2


def test_a_server_that_takes_its_time_to_read_is_left() -> None:
    with create_server(("127.0.0.1", 0)) as listening:
        left = threading.Event()
        thread = threading.Thread(target=_read_slowly, args=(listening, left), daemon=True)
        thread.start()
        started = time.monotonic()
        with pytest.raises(httpx.WriteTimeout):
            ask(f"http://127.0.0.1:{listening.getsockname()[1]}", content=b"x" * 50_000_000)
        assert time.monotonic() - started < WITHIN_S + 2.0
        left.set()
        thread.join()


def test_a_redirect_is_given_back_and_not_followed() -> None:
    with hostile_server("redirect") as server:
        assert ask(server.url).has_redirect_location
    assert server.asked == 1


def test_gzip_is_asked_for_and_unpacked(stand_in: StandIn) -> None:
    text = "naïve " * 1_000
    headers = (("Content-Encoding", "gzip"), ("Content-Type", "text/plain; charset=utf-8"))
    stand_in.on("/x", Reply(gzip.compress(text.encode()), headers=headers))
    answer = ask(f"{stand_in.url}/x")
    assert answer.text == text
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert stand_in.asked[0].headers["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip",
        gzip.compress(b"text " * 1_000)[:-20],
        gzip.compress(b"text") + b"more",
        gzip.compress(b"text") + gzip.compress(b"text"),
    ],
    ids=["none", "cut", "more after it", "two"],
)
def test_damaged_gzip_is_never_taken_for_an_answer(stand_in: StandIn, content: bytes) -> None:
    stand_in.on("/x", Reply(content, headers=(("Content-Encoding", "gzip"),)))
    with pytest.raises(httpx.DecodingError):
        ask(f"{stand_in.url}/x")


def test_just_as_much_as_allowed_is_taken(stand_in: StandIn) -> None:
    stand_in.on("/x", Reply(b"x" * MOST_BYTES), Reply(b"x" * (MOST_BYTES + 1)))
    assert len(ask(f"{stand_in.url}/x").content) == MOST_BYTES
    with pytest.raises(UnusableAnswer):
        ask(f"{stand_in.url}/x")


def test_proxies_of_the_environment_are_asked_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile_server("drip in the header") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(httpx.ReadTimeout):
            ask("http://somewhere.example/")
        assert proxy.asked == 1


def _read_slowly(listening: socket, left: threading.Event) -> None:
    connection, _ = listening.accept()
    with connection:
        while not left.wait(0.02):
            connection.recv(4_096)
