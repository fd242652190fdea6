"""The MCP server at /mcp of the admin server. A judge's token gets the judging tools alone, the admin's all of them.

Every request stands for itself: who asks is read from its own token, and nothing is stored for a session, which the
newest version of the protocol has none of. So what an admin has seen holds for all connections with the admin's token.
"""

from typing import TYPE_CHECKING

from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from tipbench.core.errors import MissingExtra
from tipbench.server.mcp.tools import SeenResults
from tipbench.server.views.bench import BenchViews
from tipbench.web.authentication import signed_in
from tipbench.web.tokens import Visitor

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class McpEndpoint:
    """The ASGI app. The package `mcp` is imported by the first request: most servers never get one."""

    def __init__(self, views: BenchViews) -> None:
        self._views = views
        self._seen = SeenResults()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()  # here, where its limits raise what the middleware expects
        manager = await run_in_threadpool(self._manager, signed_in(request))
        sent = False

        async def receive_again() -> Message:
            nonlocal sent
            if sent:
                return await receive()  # from now on, only that the client has disconnected
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async with manager.run():
            await manager.handle_request(scope, receive_again, send)

    def _manager(self, visitor: Visitor) -> "StreamableHTTPSessionManager":
        """Return a manager for one request, with the tools of whoever sent it."""
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            from tipbench.server.mcp.server import full_face, judging_face, mcp_server
        except ModuleNotFoundError as error:
            raise MissingExtra(f"/mcp needs another package: pip install 'tipbench[mcp]' ({error})") from error
        views = self._views
        if visitor.is_admin:
            face = full_face(views, visitor.name, self._seen)
        else:
            face = judging_face(views.desk, visitor.name)
        return StreamableHTTPSessionManager(mcp_server(face), stateless=True)
