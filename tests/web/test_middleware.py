"""All of it together: answers pass through it piece by piece, and an app's start and end do, too."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from tests.web.small_app import Site


def test_live_events_are_not_held_back(site: Site) -> None:
    order: list[str] = []

    def live() -> Response:
        async def events() -> AsyncIterator[bytes]:
            for number in range(2):
                order.append(f"made {number}")
                yield b"data: x\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def receive() -> Message:
        return await asyncio.Future()

    async def send(message: Message) -> None:
        if message.get("body"):
            order.append("sent")

    site.app.add_api_route("/api/live", live)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/live",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {site.admin}".encode()), (b"host", b"localhost")],
        "asgi": {"spec_version": "2.4"},
    }
    asyncio.run(site.app(scope, receive, send))
    assert order == ["made 0", "sent", "made 1", "sent"]


def test_the_app_is_started_and_ended(site: Site) -> None:
    wanted: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> Message:
        return wanted.pop(0)

    async def send(message: Message) -> None:
        sent.append(message["type"])

    asyncio.run(site.app({"type": "lifespan", "asgi": {}, "state": {}}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
