"""HTTP to servers that we don't control: responses are bounded in size and time, and redirects are not followed.

For many small requests to one server there is `tipbench.core.http_pool`, which takes a third of the time.
"""

import ssl
import time
from collections.abc import Iterable
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpcore
import httpx

from tipbench.core.http_pool import BrokenResponse, UnusableContent, limited_content

_TRANSFER_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
_WRITE_BYTES = 65_536
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class UnusableAnswer(httpx.RequestError):
    """The response is too large, or compressed in a way we did not ask for; str() says what the server did."""


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context that all clients of this process share: loading the trusted authorities takes 30 ms."""
    return httpx.create_ssl_context()


def open_client(**arguments: Any) -> httpx.Client:
    """Open an HTTP client for `fetch`. Takes the arguments of httpx.Client; proxies set in the environment are used."""
    client = httpx.Client(**({"verify": tls_context()} | arguments))
    client.headers["Accept-Encoding"] = "gzip"
    # httpx has no public API for replacing the network backend of all its pools, including those of proxies.
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _TimedBackend(pool._network_backend)
    return client


def fetch(
    client: httpx.Client, method: str, url: str, *, max_bytes: int, total_timeout_s: float, **arguments: Any
) -> httpx.Response:
    """Send a request and read the whole response: at most `max_bytes` after decompression, within `total_timeout_s`.

    Raises UnusableAnswer, httpx.TimeoutException once the total time is up, even if the server keeps sending, and
    whatever httpx.Client.request raises.
    """
    token = _deadline.set(time.monotonic() + total_timeout_s)
    try:
        with client.stream(method, url, **arguments) as answer:
            content = _content(answer, max_bytes)
            headers = [pair for pair in answer.headers.multi_items() if pair[0].lower() not in _TRANSFER_HEADERS]
            return httpx.Response(answer.status_code, headers=headers, content=content, request=answer.request)
    except httpx.RemoteProtocolError as error:
        if "bytearray(" not in str(error):
            raise
        raise httpx.RemoteProtocolError("the server there does not speak HTTP") from None  # don't repeat its bytes
    finally:
        _deadline.reset(token)


def _content(answer: httpx.Response, max_bytes: int) -> bytes:
    chunks = [answer.content] if answer.is_stream_consumed else answer.iter_raw()  # consumed: a mock transport
    try:
        return limited_content(chunks, answer.headers.get("Content-Encoding", ""), max_bytes)
    except UnusableContent as error:
        raise UnusableAnswer(str(error)) from None
    except BrokenResponse as error:
        raise httpx.DecodingError(str(error)) from None


class _TimedBackend(httpcore.NetworkBackend):
    """A network backend whose blocking calls all end at the deadline of the current request."""

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
        limit = _remaining(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._backend.connect_tcp(host, port, limit, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.NetworkStream:
        limit = _remaining(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._backend.connect_unix_socket(path, limit, socket_options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _remaining(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_BYTES):  # a slow reader could draw out a single long write
            self._stream.write(buffer[start : start + _WRITE_BYTES], _remaining(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _remaining(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _remaining(timeout: float | None, timeout_error: type[httpcore.TimeoutException]) -> float | None:
    """Return the seconds that one blocking call may take; raise `timeout_error` after the request's deadline."""
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise timeout_error("the whole answer took too long")
    return left if timeout is None else min(timeout, left)
