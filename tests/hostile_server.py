"""A server that answers as no server should: endlessly, drop by drop, compressed beyond measure, or with anything."""

import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_DRIP_S = 0.05
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class HostileServer:
    """Listens on the loopback; `manner` says how the next request is answered."""

    def __init__(self) -> None:
        self.manner = "garbage"
        self.sent = 0  # bytes, of all answers
        self.asked = 0  # requests
        self._closing = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def serve(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._closing.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                while _read_request(connection):
                    self.asked += 1
                    again = self.manner == "drip on a used connection"
                    pieces = _fine() if again and self.asked == 1 else MANNERS[self.manner](self._closing)
                    for piece in pieces:
                        connection.sendall(piece)
                        self.sent += len(piece)
                    if not again:
                        return
            except OSError:
                return  # the client has gone


def _read_request(connection: socket.socket) -> bool:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65_536)
        if not piece:
            return False
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < lengths[0] and piece:
        piece = connection.recv(65_536)
        body += piece
    return True


def _fine() -> Iterator[bytes]:
    yield _OK + b"Content-Length: 2\r\n\r\n{}"


def _endless(closing: threading.Event) -> Iterator[bytes]:
    yield _OK + b'\r\n{"x": "'
    while not closing.is_set():
        yield b"x" * 65_536


def _endless_header(closing: threading.Event) -> Iterator[bytes]:
    yield _OK + b"X-Long: "
    while not closing.is_set():
        yield b"x" * 65_536


def _dripping(start: bytes) -> Callable[[threading.Event], Iterator[bytes]]:
    def drip(closing: threading.Event) -> Iterator[bytes]:
        yield start
        while not closing.wait(_DRIP_S):
            yield b"x"

    return drip


def _bomb(closing: threading.Event) -> Iterator[bytes]:
    """Ten megabytes of spaces in ten kilobytes, again and again."""
    yield _OK + b"Content-Encoding: gzip\r\n\r\n"
    stream = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    while not closing.is_set():
        yield stream.compress(b" " * 10_000_000)


def _hang(closing: threading.Event) -> Iterator[bytes]:
    closing.wait()
    yield b""


def _whole(head: bytes, body: bytes = b"") -> Callable[[threading.Event], Iterator[bytes]]:
    return lambda _closing: iter([head + b"Content-Length: %d\r\n\r\n" % len(body) + body])


MANNERS: dict[str, Callable[[threading.Event], Iterator[bytes]]] = {
    "endless": _endless,
    "endless header": _endless_header,
    "drip": _dripping(_OK + b"Content-Length: 1000000\r\n\r\n"),
    "drip in the header": _dripping(_OK + b"X-Slow: "),
    "drip on a used connection": _dripping(_OK + b"X-Slow: "),
    "gzip bomb": _bomb,
    "brotli": _whole(_OK + b"Content-Encoding: br\r\n", b"\x0b\x02\x80hello\x03"),
    "redirect": _whole(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/secret\r\n"),
    "garbage": lambda _closing: iter([b"\x00\xff\xfe no HTTP at all \r\n\r\n" * 100]),
    "no JSON": _whole(_OK, b"\x00\xff{]"),
    "HTML": _whole(_OK.replace(b"application/json", b"text/html"), b"<html><body><h1>It works!</h1></body></html>"),
    "other JSON": _whole(_OK, b'{"models": 5, "data": {"a": []}, "runs": "x", "experiments": [7], "choices": 1}'),
    "deep JSON": _whole(_OK, b"[" * 1_000_000),
    "a list": _whole(_OK, b"[1, 2]"),
    "hang": _hang,
}


@contextmanager
def hostile_server(manner: str) -> Iterator[HostileServer]:
    server = HostileServer()
    server.manner = manner
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()
