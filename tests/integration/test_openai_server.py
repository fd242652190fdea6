"""A whole collection on an OpenAI-compatible server that is busy now and then: everything answered, side by side."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench

TIPS = json.dumps([f"Tip number {n}, before 10:00." for n in range(5)])


class Load:
    def __init__(self) -> None:
        self.now = self.most = self.refused = self.answered = 0
        self.lock = threading.Lock()


@contextmanager
def busy_server(capacity: int) -> Iterator[tuple[str, Load]]:
    """Answers at most so many at once, and 429 with Retry-After to the others."""
    load = Load()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200, {"data": [{"id": "served", "meta": {"n_params": 10**9}}]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with load.lock:
                load.now += 1
                load.most = max(load.most, load.now)
                too_many = load.now > capacity
                load.refused += too_many
                load.answered += not too_many
            time.sleep(0.02)
            with load.lock:
                load.now -= 1
            if too_many:
                self._reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"})
            else:
                self._reply(200, {"choices": [{"message": {"content": TIPS}, "finish_reason": "stop"}]})

        def _reply(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
            content = json.dumps(data).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", load
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_every_cell_is_answered_by_a_server_that_takes_four_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy_server(capacity=4) as (url, load):
        monkeypatch.setenv("TIPBENCH_OPENAI_URL", url)
        done = tipbench(
            *("collect", "--models", "openai/served", "--repeats", "4", "--experiment", "tip-bench-busy"),
            *("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}"),
        )
    assert done.status == 0, done.err
    assert "96 cells answered with 480 candidates" in done.out
    assert load.answered == 96
    assert 4 < load.most <= 16, "sixteen at once by default"
    assert 0 < load.refused < 96, "and fewer once it was busy"
