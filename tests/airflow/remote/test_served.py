"""The server while Airflow is away: it starts, says so where jobs are, and all else works."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.engines.stand_in import free_address
from tests.web.small_app import Caller
from tipbench.core.settings import Settings
from tipbench.server.app import admin_server
from tipbench.web.authentication import open_access

TOKEN = "a-token-of-20-characters"


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Caller]:
    environment = {
        "TIPBENCH_HOME": str(tmp_path),
        "TIPBENCH_RUNNER": "airflow",
        "TIPBENCH_AIRFLOW_URL": free_address(),
        "TIPBENCH_AIRFLOW_TOKEN": "t0",
    }
    app = admin_server(f"sqlite:///{tmp_path / 'm.db'}", Settings(environment), open_access(tmp_path, time.time, TOKEN))
    yield Caller(app)

    async def end() -> None:
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(end())


ADMIN = {"authorization": f"Bearer {TOKEN}"}
BROWSER = {**ADMIN, "accept": "text/html"}


def test_jobs_are_away_and_all_else_is_there(call: Caller) -> None:
    for path in ("/jobs", "/jobs/x"):
        answer = call("GET", path, BROWSER)
        assert answer.status == 503
        assert b"start its API server" in answer.body
    assert json.loads(call("GET", "/api/jobs", ADMIN).body)["error"]["code"] == "service_unavailable"
    page = call("GET", "/experiments", BROWSER)
    assert page.status == 200
    assert b"Running jobs can\xe2\x80\x99t be listed" in page.body
    for path in ("/judging", "/judges", "/runs/new"):
        assert call("GET", path, BROWSER).status == 200


def test_a_store_that_no_worker_can_see_is_refused_in_one_sentence(call: Caller) -> None:
    body = json.dumps({"models": "qwen2.5:0.5b"}).encode()
    answer = call("POST", "/api/bench/run", {**ADMIN, "content-type": "application/json"}, body)
    assert answer.status == 422
    told = json.loads(answer.body)["error"]
    assert "start this server with --mlflow-url http://" in told["message"]
    assert "\n" not in told["message"]
