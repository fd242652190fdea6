"""Authentication by a service's one key: nothing is told to whoever does not have it."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from fastapi import FastAPI
from starlette.types import Message

from tests.web.small_app import Caller, Clock
from tipbench.web.attempts import LIMIT, AttemptLimiter
from tipbench.web.authentication import KeyAccess
from tipbench.web.metrics import Metrics
from tipbench.web.middleware import install_middleware
from tipbench.web.paths import PathRules
from tipbench.web.service_key import ServiceKey

KEY = "a-key-of-more-than-20-characters"
GOOD = {"authorization": f"Bearer {KEY}"}


class Service(NamedTuple):
    app: FastAPI
    call: Caller
    clock: Clock


def protect_service(app: FastAPI, key: ServiceKey, clock: Clock) -> None:
    rules, metrics = PathRules(open=("/health",)), Metrics("recommend", "files")
    install_middleware(app, KeyAccess(key, AttemptLimiter(clock)), rules, metrics)


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Service:
    app = FastAPI(openapi_url=None)
    app.add_api_route("/health", lambda: "ok")
    app.add_api_route("/things", lambda: "things", methods=["GET", "POST"])
    protect_service(app, ServiceKey(tmp_path / "key", "X", KEY), clock)
    return Service(app, Caller(app), clock)


def test_only_what_is_open_answers_without_the_key(service: Service) -> None:
    assert service.call("GET", "/health").status == 200
    for path in ("/things", "/nothing", "/health/x", "/HEALTH", "/login", "/logout"):
        refused = service.call("GET", path)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert "needs a key" in refused.error["message"]
    assert service.call("GET", "/things", GOOD).status == 200
    assert service.call("GET", "/nothing", GOOD).status == 404


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", f"Basic {KEY}", KEY, f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer \xff"]
)
def test_what_is_not_the_key_does_not_open(service: Service, header: str) -> None:
    assert service.call("GET", "/things", {"authorization": header}).status == 401


def test_a_wrong_key_is_called_a_key(service: Service) -> None:
    refused = service.call("GET", "/things", {"authorization": "Bearer wrong"})
    assert refused.error["message"] == "this key is not valid or was revoked"
    refused = service.call("GET", "/things", {"authorization": KEY})
    assert refused.error["message"] == "the Authorization header should be 'Bearer' and the key, once"


@pytest.mark.parametrize("spoil", [lambda path: path.write_text("x"), Path.mkdir, os.mkfifo])
def test_a_key_that_can_not_be_read_lets_nobody_in_and_says_so(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None]
) -> None:
    app = FastAPI(openapi_url=None)
    app.add_api_route("/health", lambda: "ok")
    path = tmp_path / "key"
    protect_service(app, ServiceKey(path, "X"), clock)
    spoil(path)
    refused = Caller(app)("GET", "/things", GOOD)
    assert (refused.status, refused.error["code"]) == (503, "service_unavailable")
    assert "can't check any key" in refused.error["message"]
    assert str(path) not in refused.error["message"]
    assert str(path) in caplog.text
    assert Caller(app)("GET", "/health").status == 200


def test_two_headers_are_not_one_key(service: Service) -> None:
    twice = [("authorization", f"Bearer {KEY}"), ("authorization", "Bearer x")]
    assert service.call("GET", "/things", twice).status == 401


def test_guesses_are_limited_and_the_key_is_always_good(service: Service) -> None:
    for _ in range(LIMIT):
        assert service.call("GET", "/things", {"authorization": "Bearer guess"}).status == 401
    limited = service.call("GET", "/things", {"authorization": "Bearer guess"})
    assert (limited.status, limited.headers["retry-after"]) == (429, "300")
    assert service.call("GET", "/things", GOOD).status == 200
    assert Caller(service.app, "203.0.113.9")("GET", "/things", {"authorization": "Bearer guess"}).status == 401
    service.clock.now += 301
    assert service.call("GET", "/things", {"authorization": "Bearer guess"}).status == 401


def test_odd_paths_are_refused_before_anything_else(service: Service) -> None:
    for path in ("/health/../things", "/health//", "/things%0a"):
        assert service.call("GET", path).status == 400


def test_a_large_body_is_refused(service: Service) -> None:
    assert service.call("POST", "/things", {**GOOD, "content-length": "1000001"}).status == 413


def test_a_websocket_is_closed(service: Service) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/health", "headers": [], "query_string": b"", "scheme": "ws"}
    asyncio.run(service.app(scope, receive, send))
    assert [(message["type"], message["code"]) for message in sent] == [("websocket.close", 1008)]


def test_what_went_well_has_no_line_and_every_answer_its_headers(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tipbench.access")
    answer = service.call("POST", "/things", GOOD)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    assert not caplog.messages
    assert service.call("POST", "/things").headers["x-content-type-options"] == "nosniff"
    assert [message.rsplit(" ", 2)[0] for message in caplog.messages] == ["POST /things 401"]
