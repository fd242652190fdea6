"""Every route, whoever adds it: nobody gets in without a token, and no other site by somebody's cookie."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount, Route

from tests.web.small_app import METRICS_TOKEN, OWN_PAGE, Caller
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.server.app import admin_server
from tipbench.web.authentication import Access, open_access
from tipbench.web.headers import SAFE_METHODS

WITHOUT_TOKEN = {("GET", "/health"), ("GET", "/login"), ("POST", "/login"), ("POST", "/api/judging/callback/x")}


class Operation(NamedTuple):
    method: str
    path: str


class _Anything(dict[str, str]):
    """For every parameter of a path."""

    def __missing__(self, key: str) -> str:
        return "x"


def operations(routes: Sequence[BaseRoute]) -> Iterator[Operation]:
    for route in routes:
        if isinstance(route, Route):
            for method in sorted(route.methods or ()):
                yield Operation(method, route.path_format.format_map(_Anything()))
        elif not isinstance(route, Mount):
            yield from operations(route.original_router.routes)  # type: ignore[attr-defined]  # FastAPI's includes


class Assembled(NamedTuple):
    app: FastAPI
    access: Access


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assembled]:
    home = tmp_path_factory.mktemp("home")
    access = open_access(home, time.time, metrics_token=METRICS_TOKEN)
    settings = Settings({"TIPBENCH_HOME": str(home), "TIPBENCH_ALLOWED_HOSTS": OWN_PAGE["host"].partition(":")[0]})
    app = admin_server(f"sqlite:///{home / 'm.db'}", settings, access)
    yield Assembled(app, access)
    asyncio.run(_end(app))


@pytest.fixture(scope="module")
def there(server: Assembled) -> list[Operation]:
    found = [*operations(server.app.routes), Operation("GET", "/mlflow/"), Operation("POST", "/mlflow/graphql")]
    assert len(found) > 50
    return found


def test_nothing_is_answered_without_a_token(server: Assembled, there: list[Operation]) -> None:
    call = Caller(server.app)
    answers = {operation: call(*operation).status for operation in there if operation not in WITHOUT_TOKEN}
    assert set(answers.values()) == {401}, answers


def test_the_metrics_token_reads_metrics_alone(server: Assembled, there: list[Operation]) -> None:
    token = {"authorization": f"Bearer {METRICS_TOKEN}"}
    closed = [one for one in there if one not in WITHOUT_TOKEN and one != ("GET", "/metrics")]
    callers = (Caller(server.app, address=f"203.0.{number // 250}.{number % 250}") for number in range(1000))
    answers = {operation: caller(*operation, token).status for operation, caller in zip(closed, callers, strict=False)}
    assert len(answers) > 50
    assert set(answers.values()) == {401}, answers
    assert Caller(server.app)("GET", "/metrics", token).status == 200


def test_a_judge_gets_to_judging_alone(server: Assembled, there: list[Operation]) -> None:
    judge = {"authorization": f"Bearer {server.access.tokens.invite('anna')}"}
    call = Caller(server.app)
    of_judges = ("/judging", "/api/judging", "/mcp", "/login", "/logout", "/health")
    closed = [one for one in there if one.path != "/" and not one.path.startswith(of_judges)]
    assert len(closed) > 30
    answers = {operation: call(*operation, judge).status for operation in closed}
    assert set(answers.values()) == {403}, answers


@pytest.mark.parametrize(
    "headers",
    [OWN_PAGE, {**OWN_PAGE, "origin": "https://evil.example"}, {"host": OWN_PAGE["host"]}],
    ids=["own page without the token", "another site", "no browser"],
)
def test_a_cookie_alone_changes_nothing(server: Assembled, there: list[Operation], headers: dict[str, str]) -> None:
    tokens, sessions = server.access.tokens, server.access.sessions
    grant = tokens.grant_of(tokens.renew_admin())
    assert grant
    cookie = {"cookie": f"tipbench_session_8080={sessions.begin(grant)}"}
    form = {"content-type": "application/x-www-form-urlencoded"}
    call = Caller(server.app)
    changing = [one for one in there if one.method not in SAFE_METHODS and one not in WITHOUT_TOKEN]
    assert len(changing) > 15
    if headers is OWN_PAGE:  # MLflow's pages can't send our token: there, that they are our own pages has to do
        changing = [one for one in changing if not one.path.startswith("/mlflow")]
    answers = {one: call(*one, {**cookie, **form, **headers}).status for one in changing}
    assert set(answers.values()) == {403}, answers


@pytest.mark.parametrize("path", ["/api/judging/next", "/api/judging/batches/x/items/y", "/judging/x/items/y"])
def test_a_judge_can_not_send_more_than_a_change_takes(server: Assembled, path: str) -> None:
    admin = {"authorization": f"Bearer {server.access.tokens.renew_admin()}", "content-type": "application/json"}
    method = "POST" if path.endswith("next") else "PATCH"
    assert Caller(server.app)(method, path, admin, b"[" + b"{}," * 400_000).status == 413


def test_no_other_name_is_served_but_a_webhook_judges_own(tmp_path: Path) -> None:
    home = {"TIPBENCH_HOME": str(tmp_path)}
    settings = Settings({**home, "TIPBENCH_CALLBACK_URL": "https://calls.example/bench"})
    access = open_access(tmp_path, time.time)
    app = admin_server(f"sqlite:///{tmp_path / 'm.db'}", settings, access, host="box.lan")
    hosts = ("evil.example", "calls.example", "box.lan:8765")
    answers = {host: Caller(app)("GET", "/health", {"host": host}).status for host in hosts}
    assert answers == {"evil.example": 400, "calls.example": 200, "box.lan:8765": 200}
    asyncio.run(_end(app))
    with pytest.raises(InvalidInput, match="TIPBENCH_ALLOWED_HOSTS"):
        admin_server(f"sqlite:///{tmp_path / 'm.db'}", Settings({**home, "TIPBENCH_ALLOWED_HOSTS": "*"}), access)


async def _end(app: FastAPI) -> None:
    async with app.router.lifespan_context(app):
        pass
