"""The application that is mounted at /mlflow: MLflow's own pages for a database file, the way to them for a server."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.errors import TrackingError
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.server.mlflow_pages.allow_list import refusal
from tipbench.server.mlflow_pages.on_demand import OnDemandServer
from tipbench.server.mlflow_pages.relay import ask, hand_back
from tipbench.server.mlflow_pages.server_process import ServerProcess

_RELOAD_S = 2
_ERROR_CODES = {
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    411: "INVALID_PARAMETER_VALUE",
    501: "NOT_IMPLEMENTED",
}
_STARTING = "MLflow's pages are starting; this takes some seconds, and the page then loads by itself."
_MISSING = "MLflow's pages need MLflow on this machine; install it with: pip install 'tipbench[mlflow]'"


@dataclass(frozen=True)
class Notice:
    """What stands there instead of one of MLflow's pages: one sentence."""

    status: int
    sentence: str
    retry_after_s: int | None = None  # a browser then loads the page again by itself


def plain_page(_: Request, notice: Notice) -> Response:
    return PlainTextResponse(notice.sentence, notice.status)


class MlflowPages:
    """For one store. MLflow's server runs only while somebody looks at its pages.

    `page` makes the page that a browser gets for a notice; its header lines are set here.
    """

    def __init__(
        self,
        address: str,
        folder: Path,
        settings: Settings,
        page: Callable[[Request, Notice], Response] = plain_page,
        idle_s: float = 1800.0,
        patience_s: float = 20.0,
    ) -> None:
        self._page = page
        self._patience_s = patience_s
        self._elsewhere = "" if address.startswith(SCHEME) else without_credentials(address)
        self._database = Path(address.removeprefix(SCHEME))
        self._has_mlflow = importlib.util.find_spec("mlflow") is not None
        self._log = folder / "mlflow-pages.log"
        self._environment: Mapping[str, str] = settings.without_secrets()
        self._server = OnDemandServer(self._new_server, idle_s)

    def run_path(self, experiment_id: str, run_id: str) -> str:
        """The page of a run: a path of ours, or an address of the MLflow server that has it."""
        return f"{self._elsewhere or '/mlflow'}/#/experiments/{experiment_id}/runs/{run_id}"

    async def close(self) -> None:
        await self._server.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        response = await self._answer(scope, receive, send)
        if response:
            await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """What to send; None when MLflow's own answer has been sent."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if self._elsewhere:
            return RedirectResponse(f"{self._elsewhere}/", 303)
        if not path:
            return RedirectResponse(f"{scope['root_path']}/", 303)
        notice = self._hindrance(scope, path)
        try:
            return self._told(scope, notice) if notice else await self._relayed(scope, receive, send, path)
        except TrackingError as error:
            return self._told(scope, Notice(503, f"{error}"))

    def _hindrance(self, scope: Scope, path: str) -> Notice | None:
        if refused := refusal(scope["method"], path):
            return Notice(403, refused)
        if "transfer-encoding" in Headers(scope=scope):  # MLflow would read such a body as an empty one
            return Notice(411, "a body without a Content-Length is not read by MLflow; send one")
        if not self._has_mlflow:
            return Notice(501, _MISSING)
        if not self._database.exists():  # MLflow would make one, and without what a new one of ours has
            return Notice(404, "There are no results yet, so MLflow has nothing to show; run a collection first.")
        return None

    async def _relayed(self, scope: Scope, receive: Receive, send: Send, path: str) -> Response | None:
        patience_s = 0.0 if _is_browsing(scope) else self._patience_s  # a page says that it waits, a script can't
        async with self._server.in_use(patience_s) as server:
            if server is None:
                return self._told(scope, Notice(503, _STARTING, _RELOAD_S))
            try:
                answer = await ask(server.client, scope, receive, path)
            except httpx.TransportError as error:
                reason = f"MLflow's server gave no answer ({type(error).__name__}); load the page again"
                return self._told(scope, Notice(502, reason))
            except ConnectionAbortedError:
                return None  # nobody is left to be answered
            try:
                await hand_back(answer, scope, receive, send, path)
            finally:
                await answer.aclose()
        return None

    def _told(self, scope: Scope, notice: Notice) -> Response:
        """A page for a browser; for scripts MLflow's own shape of an error, which its pages and clients show."""
        browsing = _is_browsing(scope)
        code = _ERROR_CODES.get(notice.status, "TEMPORARILY_UNAVAILABLE")
        data = {"error_code": code, "message": notice.sentence}
        response = self._page(Request(scope), notice) if browsing else JSONResponse(data, notice.status)
        response.headers["cache-control"] = "no-store"
        if notice.retry_after_s is not None:
            response.headers["refresh" if browsing else "retry-after"] = str(notice.retry_after_s)
        return response

    def _new_server(self) -> ServerProcess:
        return ServerProcess(self._database, self._log, self._environment)


def _is_browsing(scope: Scope) -> bool:
    return "text/html" in Headers(scope=scope).get("accept", "")
