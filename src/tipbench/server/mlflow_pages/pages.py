"""The application that is mounted at /mlflow: MLflow's own pages for a database file, the way to them for a server."""

import importlib.util
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.errors import TrackingError
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.server.mlflow_pages.on_demand import OnDemandServer
from tipbench.server.mlflow_pages.server_process import HOST, ServerProcess

# What MLflow's pages need at least, tried in Chromium: no inline script and no eval; styles are set by script.
PAGES_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"

_CLOSED = re.compile(r"/(ajax-api/3\.0/mlflow/assistant|gateway|v1)(/|$)")
_READING = (
    "(experiments|runs|logged-models|datasets|traces|issues)/search|experiments/search-datasets|"
    "traces/(batchGetInfos|metrics|calculate-filter-correlation)|registered-models/get-latest-versions|"
    "prompt-optimization/jobs/search"
)
_WRITING = (
    "runs/(create|update|delete|restore|set-tag|delete-tag|log-metric|log-parameter|log-batch)|"
    "experiments/(update|delete|restore|set-experiment-tag|delete-experiment-tag)"
)
_POST = re.compile(rf"/(ajax-)?api/[23]\.0/mlflow/({_READING}|{_WRITING})|/graphql|/ajax-api/3\.0/jobs/search")
_ARTIFACT = re.compile(
    r"/(get-artifact|model-versions/get-artifact)$|/get-trace-artifact$|/mlflow-artifacts/|/artifacts/files$"
)
_PAGES = re.compile(r"/(static-files/.*)?")
_SHOWN_AS_THEY_ARE = frozenset(
    ("text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
)
_PASSED_ON = frozenset(
    (
        *("accept", "accept-encoding", "content-type", "content-length", "content-encoding"),
        *("range", "if-range", "if-none-match", "if-modified-since", "cache-control"),
    )
)
_KEPT_BACK = re.compile(
    "connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie|server|date|"
    "access-control-.*|content-security-policy|x-frame-options"
)
_RELOAD_S = 2
_ERROR_CODES = {
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    411: "INVALID_PARAMETER_VALUE",
    501: "NOT_IMPLEMENTED",
}
_STARTING = "MLflow's pages are starting; this takes some seconds, and the page then loads by itself."
_MISSING = "MLflow's pages need MLflow on this machine; install it with: pip install 'tipbench[mlflow]'"


# Which of MLflow's calls go through, and what keeps the answers from running as code in our origin.
#
# MLflow's server can do more than show results: it calls models with stored keys, runs a shell for an assistant,
# posts to webhooks and reads files wherever an experiment says that its artifacts are. Its pages here are for looking
# at runs and for tidying them up.


def refusal(method: str, path: str) -> str:
    """Why a call does not go through; empty when it does."""
    if {".", ".."} & set(path.split("/")) or "\\" in path:
        return "a path with '.' or '..' in it leads nowhere"
    if method in ("GET", "HEAD") and not _CLOSED.match(path):
        return ""
    if method == "POST" and _POST.fullmatch(path):
        return ""
    return (
        f"{method} {path[:120]} is not open here: MLflow's pages show runs and experiments, rename, tag, delete and "
        "restore them; for anything else start MLflow's own server on the database"
    )


def request_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What MLflow needs to know: never a cookie, a token, an origin or where the request came from."""
    return [(name, value) for name, value in given if name.decode("latin-1").lower() in _PASSED_ON]


def response_headers(path: str, given: Mapping[str, str]) -> dict[str, str]:
    """MLflow's headers without those of its connection, and with ours. Names are in lower case."""
    kept = {name.lower(): value for name, value in given.items() if not _KEPT_BACK.fullmatch(name.lower())}
    kept["x-content-type-options"] = "nosniff"
    kept["content-security-policy"] = PAGES_POLICY if _PAGES.fullmatch(path) else DATA_POLICY
    if _ARTIFACT.search(path):
        _make_inert(kept)
    return kept


def _make_inert(headers: dict[str, str]) -> None:
    """A model may have written it: a file to keep, of a type that no browser runs, not even as somebody's script."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _SHOWN_AS_THEY_ARE:
        headers["content-type"] = "application/octet-stream"
    if not headers.get("content-disposition", "").lower().startswith("attachment"):
        headers["content-disposition"] = "attachment"


# One request, handed to MLflow's server and its answer handed back, both as they come and never whole in memory.


async def ask(client: httpx.AsyncClient, scope: Scope, receive: Receive, path: str) -> httpx.Response:
    """MLflow's answer, of which only the head is read. Raises httpx.TransportError when there is none."""
    headers = request_headers(scope["headers"])
    has_body = any(name.lower() == b"content-length" for name, _ in headers)
    request = client.build_request(
        scope["method"],
        httpx.URL(f"http://{HOST}{quote(path)}", query=scope.get("query_string", b"")),
        headers=headers,
        content=_body(receive) if has_body else None,
    )
    return await client.send(request, stream=True)


async def hand_back(answer: httpx.Response, scope: Scope, receive: Receive, send: Send, path: str) -> None:
    headers = response_headers(path, answer.headers)
    if "location" in headers:
        headers["location"] = _outside(headers["location"], scope.get("root_path", ""))
    response = StreamingResponse(answer.aiter_raw(), answer.status_code, headers)
    await response(scope, receive, send)


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError("the browser went away in the middle of its request")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def _outside(location: str, prefix: str) -> str:
    """Where MLflow sends a browser, as seen from outside."""
    target = urlsplit(location)
    if target.netloc not in ("", HOST) or not target.path.startswith("/"):
        return location
    return prefix + target.path + (f"?{target.query}" if target.query else "")


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
