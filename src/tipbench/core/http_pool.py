"""Kept connections to one HTTP server that we don't control, for many small requests from many threads.

Responses are bounded in size and time, and redirects are not followed, as in `tipbench.core.http`. This module is for
requests whose number grows with an experiment: it needs a third of the processor time that httpx does.
"""

import base64
import http.client
import io
import json
import re
import select
import socket
import ssl
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tipbench.core.untrusted import printable

_CONNECT_S = 10.0
_LATE_S = 0.1
_IDLE_S = 5.0  # many servers close a connection soon after that
_CHUNK = 65_536
_REDIRECTS = (301, 302, 303, 307, 308)
_HOST = re.compile(r"[^\s/?#@\\\x00-\x20\x7f]+")
_IN_PATH = "/%:@!$&'()*+,;=~-._"


class HttpError(Exception):
    """A request without a usable response; str() says what happened, without repeating what the server sent."""


class InvalidAddress(HttpError):
    """The server's address, or that of a proxy, can't be used."""


class NotConnected(HttpError):
    """No connection could be made; nothing was sent."""


class ConnectTimeout(NotConnected):
    """No connection could be made in time."""


class ResponseTimeout(HttpError):
    """The whole response did not arrive in time."""


class UnusableContent(HttpError):
    """The response is too large, or compressed in a way we did not ask for; str() says what the server did."""


class BrokenResponse(HttpError):
    """The connection was cut off, or the response is invalid."""


@dataclass(frozen=True)
class Response:
    """A complete response, of any status."""

    status_code: int
    headers: Message
    content: bytes

    @property
    def has_redirect_location(self) -> bool:
        return self.status_code in _REDIRECTS and "Location" in self.headers

    def json(self) -> Any:
        """Return the content as plain data; raise ValueError or RecursionError if it is not JSON."""
        return json.loads(self.content)


class HttpPool:
    """Connections to the server at a base URL. Threads share it without a lock: an idle connection is one's own."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        """Credentials in the URL are sent; proxies set in the environment are used. Raises InvalidAddress."""
        self._server = _Address(url)
        self._headers = {"Accept": "*/*", "Accept-Encoding": "gzip", "Connection": "keep-alive"}
        self._headers |= self._server.authorization("Authorization") | dict(headers or {})
        self._proxy = _proxy_of(self._server)
        self._idle: deque[_Connection] = deque()
        self._is_closed = False

    def request(
        self, method: str, path: str, body: bytes | None = None, *, max_bytes: int, timeout_s: float
    ) -> Response:
        """Send a request with a JSON body and read the whole response.

        It may have `max_bytes` after decompression, and everything may take `timeout_s`, even if the server keeps
        sending. Raises HttpError.
        """
        connection = self._connection(time.monotonic() + timeout_s)
        try:
            response = connection.exchange(method, path, body, self._headers, max_bytes)
        except BaseException:
            connection.close()
            raise
        if connection.sock and not self._is_closed:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _connection(self, deadline: float) -> "_Connection":
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread has just taken the last one
                break
            if connection.is_usable():
                connection.deadline = deadline
                return connection
            connection.close()
        return _Connection(self._server, self._proxy, deadline)


class _Address:
    """A server's or proxy's URL in its parts."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidAddress("the address is not valid") from None
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
            raise InvalidAddress("the address is not valid")
        self.is_tls = parts.scheme == "https"
        self.scheme = parts.scheme
        self.host = host
        self.port = port or (443 if self.is_tls else 80)
        self.path = quote(parts.path.rstrip("/"), safe=_IN_PATH)
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")

    @property
    def location(self) -> str:
        """Return host and port as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def authorization(self, header: str) -> dict[str, str]:
        if not (self._user or self._password):
            return {}
        pair = f"{self._user}:{self._password}".encode()
        return {header: f"Basic {base64.b64encode(pair).decode()}"}


def _proxy_of(server: _Address) -> _Address | None:
    """Return the proxy that the environment names for this server."""
    proxies = getproxies()
    url = proxies.get(server.scheme) or proxies.get("all")
    if not url or proxy_bypass(server.location):
        return None
    proxy = _Address(url if "://" in url else f"http://{url}")
    if proxy.is_tls:
        raise InvalidAddress("the proxy's address is not valid: it has to start with http://")
    return proxy


class _Connection(http.client.HTTPConnection):
    """One connection; every wait of a request ends at the request's deadline."""

    def __init__(self, server: _Address, proxy: _Address | None, deadline: float) -> None:
        super().__init__((proxy or server).host, (proxy or server).port)
        self._server = server
        self._proxy = proxy
        self._prefix = server.path
        self._proxy_headers: dict[str, str] = {}
        if proxy and not server.is_tls:  # it is asked for the whole address
            self._prefix = f"http://{server.location}{server.path}"
            self._proxy_headers = {"Host": server.location, **proxy.authorization("Proxy-Authorization")}
        self.deadline = deadline
        self.idle_since = 0.0

    def connect(self) -> None:
        left = self.deadline - time.monotonic()
        timeout_s = min(max(left, 0.001), _CONNECT_S)
        try:
            sock = socket.create_connection((self.host, self.port), timeout_s)
            self.sock = _TimedSocket(sock, self)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._server.is_tls:
                from tipbench.core.http import tls_context  # imports httpx, which plain HTTP does not need

                if self._proxy:
                    self._open_tunnel(self.sock, self._proxy)
                sock.settimeout(timeout_s)
                self.sock = _TimedSocket(tls_context().wrap_socket(sock, server_hostname=self._server.host), self)
        except TimeoutError as error:
            raise (ConnectTimeout if left > _CONNECT_S else ResponseTimeout)("timed out") from error
        except OSError as error:
            raise NotConnected(printable(str(error), 200)) from error
        except http.client.HTTPException as error:
            raise NotConnected("the proxy there does not speak HTTP") from error

    def _open_tunnel(self, sock: "_TimedSocket", proxy: _Address) -> None:
        headers = {"Host": self._server.location, **proxy.authorization("Proxy-Authorization")}
        lines = [f"CONNECT {self._server.location} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        with http.client.HTTPResponse(sock, method="CONNECT") as response:  # type: ignore[arg-type]
            response.begin()
            if response.status != 200:
                raise NotConnected(f"the proxy answered {response.status}")

    def is_usable(self) -> bool:
        """Whether the server has kept the connection open: it becomes readable when the server closes it."""
        if self.sock is None or time.monotonic() - self.idle_since > _IDLE_S:
            return False
        poll = select.poll()
        poll.register(self.sock.fileno(), select.POLLIN)
        return not poll.poll(0)

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], max_bytes: int
    ) -> Response:
        content_type = {} if body is None else {"Content-Type": "application/json"}
        try:
            self.request(method, self._prefix + path, body, {**headers, **content_type, **self._proxy_headers})
            with self.getresponse() as response:
                encoding = response.headers.get("Content-Encoding", "")
                content = limited_content(_chunks(response), encoding, max_bytes)
        except TimeoutError as error:
            raise ResponseTimeout("the whole answer took too long") from error
        except http.client.RemoteDisconnected as error:
            raise BrokenResponse("the server disconnected without sending a response") from error
        except http.client.InvalidURL as error:
            raise InvalidAddress("the address is not valid") from error
        except http.client.IncompleteRead as error:
            raise BrokenResponse("the response is cut off") from error
        except http.client.HTTPException as error:
            raise BrokenResponse("the server there does not speak HTTP") from error
        except OSError as error:
            raise BrokenResponse(printable(str(error), 200)) from error
        return Response(response.status, response.headers, content)


class _TimedSocket:
    """As much of a socket as http.client uses."""

    def __init__(self, sock: socket.socket | ssl.SSLSocket, connection: _Connection) -> None:
        self._sock = sock
        self._connection = connection
        self._timeout_s = -1.0
        self._unsent = bytearray()
        self._readers = 0
        self._is_closed = False

    def within_deadline(self) -> socket.socket:
        """Return the socket, for one wait that ends at the deadline, or at most `_LATE_S` later."""
        left = self._connection.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if not left <= self._timeout_s <= left + _LATE_S:  # setting it is a system call
            self._sock.settimeout(left)
            self._timeout_s = left
        return self._sock

    def sendall(self, data: bytes) -> None:
        """Send the data, at the latest when an answer is read: http.client sends a body after its headers."""
        self._unsent += data
        if len(self._unsent) > _CHUNK:
            self.flush()

    def flush(self) -> None:
        unsent, self._unsent = memoryview(self._unsent), bytearray()
        for start in range(0, len(unsent), _CHUNK):  # a slow reader could draw out a single long write
            self.within_deadline().sendall(unsent[start : start + _CHUNK])

    def makefile(self, _mode: str) -> io.BufferedReader:
        self._readers += 1
        return io.BufferedReader(_TimedReader(self), _CHUNK)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket once its last reader is closed: the body of a last response is read after this."""
        self._is_closed = True
        if not self._readers:
            self._sock.close()

    def reader_closed(self) -> None:
        self._readers -= 1
        if self._is_closed:
            self.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: _TimedSocket) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.flush()
        return self._sock.within_deadline().recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._sock.reader_closed()


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while chunk := response.read(_CHUNK):
        yield chunk
    if response.length:  # the server announced more
        raise http.client.IncompleteRead(b"", response.length)


def limited_content(chunks: Iterable[bytes], encoding: str, max_bytes: int) -> bytes:
    """Return a response's decompressed content; raise UnusableContent or, if it is damaged, BrokenResponse."""
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise UnusableContent(f"answered with Content-Encoding {encoding[:60]!r}, which was not asked for")
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.endswith("gzip") else None
    content = bytearray()
    is_empty = True
    for chunk in chunks:
        is_empty = is_empty and not chunk
        try:
            content += gzip.decompress(chunk, max_bytes + 1 - len(content)) if gzip else chunk
        except zlib.error:
            raise BrokenResponse("the gzip-compressed answer is damaged") from None
        if len(content) > max_bytes:
            raise UnusableContent(f"answered with more than {max_bytes / 1_000_000:g} MB")
        if gzip and gzip.unused_data:
            raise BrokenResponse("the gzip-compressed answer has trailing data")
    if gzip and not gzip.eof and not is_empty:
        raise BrokenResponse("the gzip-compressed answer is cut off")
    return bytes(content)
