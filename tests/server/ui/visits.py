"""Visiting the made-up panel, and taking its pages apart."""

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI

from tests.bench.compare.html.parsed import Node, parsed
from tests.server.ui.made_panel import ADMIN, app_of, parts_of
from tipbench.server.ui.pages import Parts
from tipbench.web.tokens import Visitor


class Guest:
    """Asks an app in this process, and follows no redirect; what a handler raises is raised here."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, url: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._asked("GET", url, **more))

    def post(self, url: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._asked("POST", url, **more))

    async def _asked(self, method: str, url: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://panel.test") as client:
            return await client.request(method, url, **more)


def visit(parts: Parts | None = None, visitor: Visitor | None = ADMIN, **given: Any) -> Guest:
    return Guest(app_of(parts or parts_of(**given), visitor))


def page_at(client: Guest, url: str, status: int = 200) -> Node:
    answer = client.get(url)
    assert answer.status_code == status, answer.text
    return parsed(answer.text)


def by_id(page: Node, name: str) -> Node:
    (found,) = [node for node in page.all() if node.attributes.get("id") == name]
    return found


def links(page: Node) -> list[str]:
    return [node.attributes["href"] or "" for node in page.all("a")]


def structure(page: Node) -> list[tuple[str, tuple[str, ...]]]:
    """What a browser makes of it, apart from its texts."""
    return [(node.tag, tuple(node.attributes)) for node in page.all()]
