"""A small HTTP server that stands in for an engine: it remembers what it was asked and fails on demand."""

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tipbench.bench.records import GenerationRequest, Message

SCORE_SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [1, 2, 3]}},
    "required": ["score"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: Any
    headers: dict[str, str]
    raw: bytes = b""  # the body as it came


@dataclass(frozen=True)
class Reply:
    """What the stand-in does with a request."""

    body: Any = None  # bytes go out as they are, all else as JSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    hangs: bool = False  # no answer before the stand-in closes
    drops: bool = False  # the connection closes without an answer
    cut: bool = False  # the connection closes halfway through the body

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class StandIn:
    """Answers each path with its replies in turn, the last one for ever."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._replies: dict[str, list[Reply]] = {}
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def on(self, path: str, *replies: Reply) -> None:
        self._replies[path] = list(replies)

    def bodies(self, path: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.path == path]

    def __enter__(self) -> "StandIn":
        self._thread.start()
        return self

    def __exit__(self, _kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, path: str) -> Reply:
        replies = self._replies.get(path) or [Reply({"error": f"nothing at {path}"}, 404)]
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))

            def _answer(self, raw: bytes) -> None:
                body = json.loads(raw) if raw else None
                stand_in.asked.append(Asked(self.command, self.path, body, dict(self.headers), raw))
                reply = stand_in._next(self.path)
                if reply.hangs:
                    stand_in._closing.wait(30)
                if reply.hangs or reply.drops:
                    return
                self.send_response(reply.status)
                for name, value in (("Content-Length", str(len(reply.content))), *reply.headers):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.content[: len(reply.content) // 2] if reply.cut else reply.content)

            def log_message(self, *_arguments: Any) -> None:
                """Silent."""

        return Handler


def free_address() -> str:
    """An address at which nothing listens."""
    with StandIn() as gone:
        return gone.url


def a_request(model: str, text: str = "Three tips, please.", **changes: Any) -> GenerationRequest:
    asked: dict[str, Any] = {"temperature": 0.7, "seed": 11, "max_tokens": 24, **changes}
    return GenerationRequest(model, (Message("system", "You are brief."), Message("user", text)), **asked)
