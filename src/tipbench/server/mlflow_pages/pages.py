"""The ASGI app mounted at /mlflow: MLflow's own pages for a database file, or a redirect to an MLflow server."""

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
from tipbench.bench.tracking.mlflow_process import HOST
from tipbench.core.errors import TrackingError
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.server.mlflow_pages.on_demand import OnDemandServer
from tipbench.server.mlflow_pages.server_process import ServerProcess

# The minimum that MLflow's pages need, tested in Chromium: no inline scripts, no eval; scripts set inline styles.
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
_SAFE_TYPES = frozenset(
    ("text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
)
_FORWARDED_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "content-type", "content-length", "content-encoding"),
        *("range", "if-range", "if-none-match", "if-modified-since", "cache-control"),
    )
)
_DROPPED_HEADERS = re.compile(
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
_STARTING = "MLflow's pages are starting; this takes a few seconds, then the page loads by itself."
_MISSING = "MLflow's pages need MLflow on this machine; install it with: pip install 'tipbench[mlflow]'"


# The allow-list of MLflow's endpoints, and headers that keep responses from running as code in our origin.
#
# MLflow's server can do more than show results: it calls models with stored keys, runs a shell for an assistant,
# posts to webhooks and reads files wherever an experiment says that its artifacts are. Here its pages are only for
# viewing runs and cleaning them up.


def refusal(method: str, path: str) -> str:
    """Return why a request is refused; an empty string if it is allowed."""
    if {".", ".."} & set(path.split("/")) or "\\" in path:
        return "a path must not contain '.' or '..'"
    if method in ("GET", "HEAD") and not _CLOSED.match(path):
        return ""
    if method == "POST" and _POST.fullmatch(path):
        return ""
    return (
        f"{method} {path[:120]} is not available here: MLflow's pages can show, rename, tag, delete and restore runs "
        "and experiments; for anything else, start MLflow's own server on the database"
    )


def request_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers to forward to MLflow: never a cookie, a token, an origin or the client's address."""
    return [(name, value) for name, value in given if name.decode("latin-1").lower() in _FORWARDED_HEADERS]


def response_headers(path: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return MLflow's headers, without those of the connection, plus our own. Names are in lower case."""
    headers = {name.lower(): value for name, value in given.items() if not _DROPPED_HEADERS.fullmatch(name.lower())}
    headers["x-content-type-options"] = "nosniff"
    headers["content-security-policy"] = PAGES_POLICY if _PAGES.fullmatch(path) else DATA_POLICY
    if _ARTIFACT.search(path):
        _make_inert(headers)
    return headers


def _make_inert(headers: dict[str, str]) -> None:
    """Make a file that a model may have written a download, of a type that no browser runs, not even as a script."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _SAFE_TYPES:
        headers["content-type"] = "application/octet-stream"
    if not headers.get("content-disposition", "").lower().startswith("attachment"):
        headers["content-disposition"] = "attachment"


# Relaying one request to MLflow's server and streaming its answer back; neither is ever held in memory as a whole.


async def forward_request(client: httpx.AsyncClient, scope: Scope, receive: Receive, path: str) -> httpx.Response:
    """Return MLflow's answer with only its headers read. Raises httpx.TransportError if there is none."""
    headers = request_headers(scope["headers"])
    has_body = any(name.lower() == b"content-length" for name, _ in headers)
    request = client.build_request(
        scope["method"],
        httpx.URL(f"http://{HOST}{quote(path)}", query=scope.get("query_string", b"")),
        headers=headers,
        content=_body(receive) if has_body else None,
    )
    return await client.send(request, stream=True)


async def send_answer(answer: httpx.Response, scope: Scope, receive: Receive, send: Send, path: str) -> None:
    headers = response_headers(path, answer.headers)
    if "location" in headers:
        headers["location"] = _public_location(headers["location"], scope.get("root_path", ""))
    response = StreamingResponse(answer.aiter_raw(), answer.status_code, headers)
    await response(scope, receive, send)


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError("the browser disconnected during its request")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def _public_location(location: str, prefix: str) -> str:
    """Return the target of MLflow's redirect as a URL that the browser can use."""
    target = urlsplit(location)
    if target.netloc not in ("", HOST) or not target.path.startswith("/"):
        return location
    return prefix + target.path + (f"?{target.query}" if target.query else "")


@dataclass(frozen=True)
class Notice:
    """One sentence that is shown instead of one of MLflow's pages."""

    status: int
    sentence: str
    retry_after_s: int | None = None  # after which a browser reloads the page by itself


def plain_page(_: Request, notice: Notice) -> Response:
    return PlainTextResponse(notice.sentence, notice.status)


class MlflowPages:
    """MLflow's pages for one store. Its server runs only while the pages are in use.

    `page` renders a notice for a browser; its headers are set here.
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
        self._remote_url = "" if address.startswith(SCHEME) else without_credentials(address)
        self._database = Path(address.removeprefix(SCHEME))
        self._has_mlflow = importlib.util.find_spec("mlflow") is not None
        self._log = folder / "mlflow-pages.log"
        self._environment: Mapping[str, str] = settings.environment_without_secrets()
        self._server = OnDemandServer(self._new_server, idle_s)

    def run_path(self, experiment_id: str, run_id: str) -> str:
        """Return the page of a run: a path on this server, or a URL of the MLflow server that stores it."""
        return f"{self._remote_url or '/mlflow'}/#/experiments/{experiment_id}/runs/{run_id}"

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
        """Return the response to send; None if MLflow's own answer has been sent."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if self._remote_url:
            return RedirectResponse(f"{self._remote_url}/", 303)
        if not path:
            return RedirectResponse(f"{scope['root_path']}/", 303)
        notice = self._obstacle(scope, path)
        try:
            return self._notice_response(scope, notice) if notice else await self._relay(scope, receive, send, path)
        except TrackingError as error:
            return self._notice_response(scope, Notice(503, f"{error}"))

    def _obstacle(self, scope: Scope, path: str) -> Notice | None:
        if refused := refusal(scope["method"], path):
            return Notice(403, refused)
        if "transfer-encoding" in Headers(scope=scope):  # MLflow would take such a body for empty
            return Notice(411, "send a Content-Length with the body; MLflow does not read it otherwise")
        if not self._has_mlflow:
            return Notice(501, _MISSING)
        if not self._database.exists():  # MLflow would create one that lacks what ours has
            return Notice(404, "There are no results yet, so MLflow has nothing to show; run a collection first.")
        return None

    async def _relay(self, scope: Scope, receive: Receive, send: Send, path: str) -> Response | None:
        patience_s = 0.0 if _is_browsing(scope) else self._patience_s  # browsers get a page that reloads; scripts wait
        async with self._server.in_use(patience_s) as server:
            if server is None:
                return self._notice_response(scope, Notice(503, _STARTING, _RELOAD_S))
            try:
                answer = await forward_request(server.client, scope, receive, path)
            except httpx.TransportError as error:
                reason = f"MLflow's server did not answer ({type(error).__name__}); reload the page"
                return self._notice_response(scope, Notice(502, reason))
            except ConnectionAbortedError:
                return None  # the client is gone
            try:
                await send_answer(answer, scope, receive, send, path)
            finally:
                await answer.aclose()
        return None

    def _notice_response(self, scope: Scope, notice: Notice) -> Response:
        """Return a page for a browser; for scripts, an error in MLflow's format, which its pages and clients show."""
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
