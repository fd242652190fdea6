"""A relay before a server, on a port of its own, that goes away and comes back as a server does: at once."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class Relay:
    """Passes bytes on. Away, it refuses connections and has cut those that there were."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (str(parts.hostname), int(parts.port or 80))
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._port = 0
        self.come_back()
        self.url = f"http://127.0.0.1:{self._port}"

    def come_back(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def leave(self) -> None:
        if self._listener:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
            self._listener.close()
            self._listener = None
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), near, socket.create_connection(self._target) as far:
            with self._lock:
                self._open |= {near, far}
            try:
                with selectors.DefaultSelector() as ready:
                    ready.register(near, selectors.EVENT_READ, far)
                    ready.register(far, selectors.EVENT_READ, near)
                    while True:
                        for key, _ in ready.select():
                            assert isinstance(key.fileobj, socket.socket)
                            received = key.fileobj.recv(65536)
                            if not received:
                                return
                            key.data.sendall(received)
            finally:
                with self._lock:
                    self._open -= {near, far}


@contextlib.contextmanager
def relay(url: str) -> Iterator[Relay]:
    made = Relay(url)
    try:
        yield made
    finally:
        made.leave()
