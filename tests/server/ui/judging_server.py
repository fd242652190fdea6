"""The judging pages on a real server that can go away and come back, with what stands around them in the product."""

import socket
import time
from collections.abc import Awaitable, Callable
from threading import Thread

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from tests.server.ui.fake_desk import FakeDesk, NoSuchBatch
from tests.server.ui.made_panel import parts_of
from tipbench.core.errors import InvalidInput
from tipbench.server.ui.judging import router
from tipbench.server.ui.static_files import PanelFiles
from tipbench.web.tokens import Visitor

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"


class Session:
    """Whose cookie a browser has; None: nobody's."""

    def __init__(self, visitor: Visitor | None, token: str = "token-1") -> None:
        self.visitor = visitor
        self.token = token


def make_app(desk: FakeDesk, session: Session) -> FastAPI:
    app = FastAPI()

    @app.middleware("http")
    async def protect(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        request.state.visitor, request.state.csrf = session.visitor, session.token
        request.state.session, request.state.csrf_shown = session.visitor, False
        if session.visitor is None and not request.url.path.startswith("/static"):
            return _problem(401, "your session is over")
        forgeable = request.method in ("PATCH", "POST") and request.url.path != "/judging"
        if forgeable and request.headers.get("x-csrf-token") != session.token:
            return _problem(403, "this does not come from a page of this server")
        response = await go_on(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    @app.exception_handler(InvalidInput)
    def refused(_request: Request, error: InvalidInput) -> Response:
        return _problem(404 if isinstance(error, NoSuchBatch) else 422, str(error))

    app.include_router(router(parts_of(desk=desk, csrf=lambda request: str(request.state.csrf))))
    app.mount("/static", PanelFiles())
    return app


def _problem(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": "refused", "message": message, "problems": []}}, status)


class Server:
    """On one port, however often it is stopped and started."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = uvicorn.Config(
            self._app, host="127.0.0.1", port=self.port, log_level="error", timeout_graceful_shutdown=1, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run)
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()
