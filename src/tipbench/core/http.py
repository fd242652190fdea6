"""HTTP to servers that others run: what they answer is bounded in bytes and in time, and redirects are not followed."""

import ssl
import time
import zlib
from collections.abc import Iterable
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpcore
import httpx

_NOT_OF_CONTENT = ("content-encoding", "content-length", "transfer-encoding")
_PIECE = 65_536  # bytes
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class UnusableAnswer(httpx.RequestError):
    """An answer that is too large, or compressed in a way that was not asked for; str() is what the server did."""


@cache
def tls_context() -> ssl.SSLContext:
    """The certificate authorities that are trusted, read once for all clients of this process: it takes 30 ms."""
    return httpx.create_ssl_context()


def open_client(**arguments: Any) -> httpx.Client:
    """An HTTP client for `fetch`. Takes what httpx.Client takes; proxies of the environment are used."""
    client = httpx.Client(**({"verify": tls_context()} | arguments))
    client.headers["Accept-Encoding"] = "gzip"
    # httpx has no public way to give all of its pools, those of proxies included, another network backend.
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _TimedBackend(pool._network_backend)
    return client


def fetch(
    client: httpx.Client, method: str, url: str, *, most_bytes: int, within_s: float, **arguments: Any
) -> httpx.Response:
    """Send a request and read the whole answer, of at most `most_bytes` after decompression, within `within_s` in all.

    Raises UnusableAnswer, httpx.TimeoutException when the time is over, however the server spent it, and the other
    errors of httpx.Client.request.
    """
    token = _deadline.set(time.monotonic() + within_s)
    try:
        with client.stream(method, url, **arguments) as answer:
            content = _content(answer, most_bytes)
            headers = [pair for pair in answer.headers.multi_items() if pair[0].lower() not in _NOT_OF_CONTENT]
            return httpx.Response(answer.status_code, headers=headers, content=content, request=answer.request)
    except httpx.RemoteProtocolError as error:
        if "bytearray(" not in str(error):
            raise
        raise httpx.RemoteProtocolError("what answers there does not speak HTTP") from None  # not what it said
    finally:
        _deadline.reset(token)


def _content(answer: httpx.Response, most_bytes: int) -> bytes:
    encoding = answer.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise UnusableAnswer(f"answered with Content-Encoding {encoding[:60]!r}, which was not asked for")
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.endswith("gzip") else None
    content = bytearray()
    chunks = [answer.content] if answer.is_stream_consumed else answer.iter_raw()  # a transport without a network
    for chunk in chunks:
        try:
            content += gzip.decompress(chunk, most_bytes + 1 - len(content)) if gzip else chunk
        except zlib.error:
            raise httpx.DecodingError("the answer's gzip is damaged") from None
        if len(content) > most_bytes:
            raise UnusableAnswer(f"answered more than {most_bytes / 1_000_000:g} MB")
        if gzip and gzip.unused_data:
            raise httpx.DecodingError("the answer's gzip has something after its end")
    if gzip and answer.num_bytes_downloaded and not gzip.eof:
        raise httpx.DecodingError("the answer's gzip ends too early")
    return bytes(content)


class _TimedBackend(httpcore.NetworkBackend):
    """Opens connections whose every wait ends at the deadline of the request that is under way."""

    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._backend.connect_tcp(host, port, limit, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):  # a single long write could be drawn out by a slow reader
            self._stream.write(buffer[start : start + _PIECE], _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, over: type[httpcore.TimeoutException]) -> float | None:
    """The seconds that a single wait may take; raises `over` when the request's time is over."""
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise over("the time for the whole answer is over")
    return left if timeout is None else min(timeout, left)
