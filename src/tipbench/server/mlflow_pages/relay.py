"""One request, handed to MLflow's server and its answer handed back, both as they come and never whole in memory."""

from collections.abc import AsyncIterator
from urllib.parse import quote, urlsplit

import httpx
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tipbench.server.mlflow_pages.allow_list import request_headers, response_headers
from tipbench.server.mlflow_pages.server_process import HOST


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
