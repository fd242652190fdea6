"""A proxy before a real Ollama: records every request, and asks for structured output on the way.

The test build of Ollama writes word salad. Its own structured output makes a JSON array of it, so that there is
something to judge; what tipbench sent is recorded before that.
"""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ARRAY = {"type": "array", "items": {"type": "string", "minLength": 5, "maxLength": 60}}


class OllamaProxy:
    """What went through, as (path, body)."""

    def __init__(self, target: str, n_items: int) -> None:
        self.target = target
        self.format = {**_ARRAY, "minItems": n_items, "maxItems": n_items}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.url = ""

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for seen, body in self.requests if seen == path]


@contextmanager
def ollama_proxy(target: str, n_items: int) -> Iterator[OllamaProxy]:
    proxy = OllamaProxy(target, n_items)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            proxy.requests.append((self.path, body))
            if self.path == "/api/chat":
                body = {**body, "format": proxy.format}
            self._pass_on(json.dumps(body).encode())

        def _pass_on(self, data: bytes | None) -> None:
            request = urllib.request.Request(proxy.target + self.path, data=data, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=120) as reply:
                    status, content = reply.status, reply.read()
            except urllib.error.HTTPError as error:
                with error:
                    status, content = error.code, error.read()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
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
                held = json.load(reply)["models"]
            self.samples.append(frozenset(model["name"] for model in held))
