"""A proxy before a real Ollama: records every request, asks for structured output on the way, and makes faults.

The test build of Ollama writes word salad. Its own structured output makes a JSON array of it, so that there is
something to judge; what tipbench sent is recorded before that.
"""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ARRAY = {"type": "array", "items": {"type": "string", "minLength": 5, "maxLength": 10}}


class Fault(Enum):
    """What becomes of an answer that Ollama has given."""

    HANG = "it never comes"
    ERROR = "a 500 comes in its place"
    HALF_JSON = "its first half comes, as if it were the whole"
    NO_BODY = "nothing comes, as if it were the whole"
    EMPTY_ANSWER = "it comes without its text"
    CUT_OFF = "its first half comes, then the connection ends"
    AWAY = "the connection ends, and from then on nobody listens"


class OllamaProxy:
    """What went through, as (path, body)."""

    def __init__(self, target: str, n_items: int, faults: Mapping[int, Fault]) -> None:
        self.target = target
        self.format = {**_ARRAY, "minItems": n_items, "maxItems": n_items}
        self.faults = faults
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.url = ""

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for seen, body in self.requests if seen == path]


@contextmanager
def ollama_proxy(
    target: str, n_items: int, faults: Mapping[int, Fault] | None = None, port: int = 0
) -> Iterator[OllamaProxy]:
    """`faults` says what goes wrong with the n-th generation; the first one is 1, and a retry is the next one."""
    proxy = OllamaProxy(target, n_items, faults or {})
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(*self._from_ollama(None))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            proxy.requests.append((self.path, body))
            fault = None
            if self.path == "/api/chat":
                body = {**body, "format": proxy.format}
                fault = proxy.faults.get(len(proxy.bodies(self.path)))
            status, content = self._from_ollama(json.dumps(body).encode())
            match fault:
                case None:
                    self._reply(status, content)
                case Fault.HANG:
                    over.wait()
                case Fault.ERROR:
                    self._reply(500, b'{"error": "llama runner process has terminated: signal: killed"}')
                case Fault.HALF_JSON:
                    self._reply(status, content[: len(content) // 2])
                case Fault.NO_BODY:
                    self._reply(status, b"")
                case Fault.EMPTY_ANSWER:
                    answer = json.loads(content)
                    answer["message"]["content"] = ""
                    self._reply(status, json.dumps(answer).encode())
                case Fault.CUT_OFF:
                    self._reply(status, content[: len(content) // 2], promised=len(content))
                case Fault.AWAY:
                    server.shutdown()
                    server.server_close()

        def _from_ollama(self, data: bytes | None) -> tuple[int, bytes]:
            request = urllib.request.Request(proxy.target + self.path, data=data, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=120) as reply:
                    return reply.status, reply.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read()

        def _reply(self, status: int, content: bytes, promised: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content) if promised is None else promised))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class ResidencySampler:
    """Looks at /api/ps all the time, in a thread of its own."""

    def __init__(self, url: str, every_s: float = 0.05) -> None:
        self.samples: list[frozenset[str]] = []
        self._url = url
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "ResidencySampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            with urllib.request.urlopen(f"{self._url}/api/ps", timeout=30) as reply:
                loaded = json.load(reply)["models"]
            self.samples.append(frozenset(model["name"] for model in loaded))
