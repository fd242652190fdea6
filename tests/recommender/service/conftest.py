"""The service in this process: quick, and with a clock that stands."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.web.small_app import Answer, Caller, Clock
from tipbench.core.settings import Settings
from tipbench.recommender.service.app import serving_server

KEY = "a-serving-key-for-tests-only"


async def lived(app: FastAPI) -> None:
    """Begins and ends it, as a server does: what it opened is closed."""
    async with app.router.lifespan_context(app):
        pass


@dataclass
class Service:
    """The app, and how programs ask it."""

    app: FastAPI
    clock: Clock
    home: Path
    headers: Mapping[str, str] = field(default_factory=lambda: {"authorization": f"Bearer {KEY}"})

    def get(self, path: str) -> Answer:
        return Caller(self.app)("GET", path, self.headers)

    def post(self, path: str, body: Any) -> Answer:
        """Bytes as they are, anything else as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Caller(self.app)("POST", path, {**self.headers, "content-type": "application/json"}, content)

    def json_answer(self, path: str, body: Any = None) -> dict[str, Any]:
        """What is answered, if it is."""
        answer = self.get(path) if body is None else self.post(path, body)
        assert answer.status in (200, 202), answer.text
        data: dict[str, Any] = json.loads(answer.body)
        return data

    @property
    def states(self) -> Path:
        return self.home / "recommender" / "state"


@pytest.fixture
def made(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Service]]:
    """Makes services; all of them end with the test."""
    monkeypatch.setenv("TIPBENCH_SERVING_KEY", KEY)
    services: list[Service] = []

    def make(*shadows: str) -> Service:
        clock = Clock()
        services.append(Service(serving_server(Settings(), shadows, clock), clock, home))
        return services[-1]

    yield make
    for service in services:
        asyncio.run(lived(service.app))


@pytest.fixture
def service(made: Callable[..., Service]) -> Service:
    return made()
