"""A little server with a route of each kind, and a caller that sends exactly the bytes it is told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message

from tipbench.web.authentication import Access, Admin, SignedIn, csrf_token, open_access
from tipbench.web.login import CsrfForm, login_router
from tipbench.web.metrics import Metrics, metrics_router
from tipbench.web.middleware import install_middleware
from tipbench.web.paths import LOGIN, LOGOUT, PathRules

LOOSE_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'"
RULES = PathRules(
    open=("/health", LOGIN, "/static/*"),
    judges=("/", LOGOUT, "/judging/*", "/api/judging/*", "/api/admin-only-by-dependency"),
    forms=("/judging/begin", LOGOUT),
    metrics=("/metrics",),
    foreign=("/mlflow/*",),
    static=("/static/*",),
    policies={"/mlflow/*": LOOSE_POLICY},
    body_limits={"/api/large/*": 2_000_000},
)
METRICS_TOKEN = "a-metrics-token-for-tests-only"
HERE = "bench.example:8080"
ASKED_AS = "a-request-of-a-test"  # answers to the same request are the same
BROWSER = {"accept": "text/html,application/xhtml+xml", "host": HERE}
OWN_PAGE = {"host": HERE, "origin": f"http://{HERE}"}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def error(self) -> dict[str, Any]:
        """The error, after a check of its whole shape."""
        assert self.headers["content-type"] == "application/json"
        data = json.loads(self.body)
        assert set(data) == {"error"}
        assert set(data["error"]) == {"code", "message", "problems"}
        return dict(data["error"])


STALL = bytes(bytearray(b"never sent"))  # as a chunk: the client is silent from here on


@dataclass
class Caller:
    """Calls an app as uvicorn does, with nothing tidied up on the way."""

    app: ASGIApp
    address: str = "203.0.113.5"
    scheme: str = "http"
    asked_as: str = ASKED_AS

    def __call__(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes | Sequence[bytes] = b"",
    ) -> Answer:
        return asyncio.run(self._call(method, target, headers, body))

    async def _call(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | Sequence[bytes],
    ) -> Answer:
        raw, _, query = target.encode().partition(b"?")
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        given = {name.lower() for name, _ in pairs}
        defaults = {"host": "127.0.0.1:8080", "x-request-id": self.asked_as}
        pairs += [(name, value) for name, value in defaults.items() if value and name not in given]
        chunks = [body] if isinstance(body, bytes) else list(body)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": self.scheme,
            "path": unquote(raw.decode("ascii", "replace")),
            "raw_path": raw,
            "root_path": "",
            "query_string": query,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
            "client": (self.address, 4000),
            "server": ("127.0.0.1", 8080),
        }
        messages = [
            {"type": "http.request", "body": chunk, "more_body": at < len(chunks) - 1}
            for at, chunk in enumerate(chunks)
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            if messages and messages[0]["body"] is not STALL:
                return messages.pop(0)
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start = sent[0]
        text = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(start["status"], Headers(raw=start["headers"]), text)


class Thing(BaseModel, extra="forbid"):
    name: str = Field(max_length=10)
    count: int = Field(ge=1)
    secret_key: int = 0


@dataclass
class Site:
    """The app with its access, and the tokens of its two visitors."""

    app: FastAPI
    access: Access
    clock: Clock
    admin: str
    judge: str

    @property
    def call(self) -> Caller:
        return Caller(self.app)

    def bearer(self, token: str = "") -> dict[str, str]:
        return {"authorization": f"Bearer {token or self.admin}"}

    def cookie(self, token: str = "") -> str:
        grant = self.access.tokens.grant_of(token or self.admin)
        assert grant is not None
        return self.access.sessions.begin(grant)

    def signed_in(self, token: str = "") -> dict[str, str]:
        """Headers of a browser with a session."""
        return {"cookie": f"tipbench_session_8080={self.cookie(token)}"}

    def own_request(self, token: str = "") -> dict[str, str]:
        """Headers of a script on one of our pages."""
        cookie = self.cookie(token)
        session = self.access.sessions.read(cookie)
        assert session is not None
        csrf = self.access.sessions.csrf_token(session)
        return {**OWN_PAGE, "cookie": f"tipbench_session_8080={cookie}", "x-csrf-token": csrf}


def error_page(request: Request, status: int, message: str, problems: Sequence[str]) -> Response:
    who = request.state.visitor
    return HTMLResponse(f"<p>{status} for {who.name if who else 'nobody'}: {message} {list(problems)}</p>")


def login_page(request: Request, after: str, problem: str) -> Response:
    return HTMLResponse(f"<p>login next={after} problem={problem}</p>")


def make_site(home: Path, given_admin: str = "") -> Site:
    clock = Clock()
    access = open_access(home, clock, given_admin, metrics_token=METRICS_TOKEN)
    app = FastAPI()
    _add_routes(app)
    app.include_router(login_router(access, login_page))
    metrics = Metrics("serve", "postgresql")
    app.include_router(metrics_router(metrics))
    install_middleware(app, access, RULES, metrics, error_page, hosts=["bench.example"])
    return Site(app, access, clock, access.tokens.ensure_admin() or given_admin, access.tokens.invite("anna"))


def _add_routes(app: FastAPI) -> None:
    def here(request: Request) -> Response:
        visitor = request.state.visitor
        return PlainTextResponse(f"{visitor.role} {visitor.name}" if visitor else "nobody")

    for path in (
        "/",
        "/health",
        "/forgotten",
        "/judging",
        "/judging/sheet",
        "/static/app.css",
        "/mlflow/",
        "/api/things",
    ):
        app.add_api_route(path, here, methods=["GET", "HEAD"])
    for path in ("/health", "/forgotten", "/judging/sheet", "/mlflow/api", "/api/judging/scores"):
        app.add_api_route(path, here, methods=["POST", "PATCH", "DELETE"])

    @app.get("/api/admin-only-by-dependency")
    def by_dependency(visitor: Admin) -> str:
        return visitor.name

    @app.get("/api/judging/me")
    def me(visitor: SignedIn) -> str:
        return visitor.name

    @app.get("/csrf")
    def csrf(request: Request) -> str:
        return csrf_token(request)

    @app.post("/judging/begin")
    def begin(fields: CsrfForm) -> dict[str, Sequence[str]]:
        return dict(fields)

    @app.post("/api/things")
    def add(thing: Thing) -> str:
        return thing.name

    @app.post("/api/echo")
    @app.post("/api/large/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    @app.get("/api/half")
    def half() -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"half"
            raise RuntimeError("the other half")

        return StreamingResponse(chunks())
