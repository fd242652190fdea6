"""The whole OpenAPI document with odd requests: no 5xx, one error shape, and nothing without authentication."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.integration.serving import TOKEN, Served, ended_job, serving, start_run, until
from tests.server.views.made_recommender import a_gate, a_replay

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
EXPERIMENT = "tip-bench-fuzzed"
SIMULATION = {"kind": "run", "policies": ["egreedy"], "seeds": 1, "steps": 5}
QUICK = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def its_home(tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "cache").symlink_to(empty_databases)
    return home


@pytest.fixture(scope="module")
def served(its_home: Path) -> Iterator[Served]:
    with serving("--mlflow-url", f"sqlite:///{its_home / 'mlflow.db'}", TIPBENCH_HOME=str(its_home)) as served:
        yield served


@pytest.fixture(scope="module")
def there(served: Served, its_home: Path) -> dict[str, str]:
    """What is there to be asked for, by the parameter's name."""
    with served.client() as client:
        job = start_run(client, models="scripted/a", prompts="v1", n_scenarios=2, n_tips=1, experiment=EXPERIMENT)
        assert ended_job(client, job["id"])["state"] == "finished"
        batch = client.post("/api/judging/next").json()["batch"]["batch"]
        slot = client.get(f"/api/judging/batches/{batch}").json()["items"][0]["slot"]
        run = client.get(f"/api/bench/runs/{EXPERIMENT}").json()["runs"][0]["run_id"]
        simulation = client.post("/api/recommend/simulations", json=SIMULATION).json()["id"]
        until(lambda: client.get(f"/api/recommend/simulations/{simulation}").json()["ended_ms"])
        return {
            **{"experiment": EXPERIMENT, "job_id": job["id"], "batch": batch, "slot": slot, "run_id": run},
            **{"simulation_id": simulation, "gate_id": a_gate(its_home), "replay_id": a_replay(its_home)},
        }


@pytest.fixture(scope="module")
def document(served: Served, there: dict[str, str]) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/api/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})


def aim(case: Any, there: dict[str, str]) -> None:
    """Half of the requests are for things that are there."""
    if crc32(repr((case.path_parameters, case.body)).encode("utf-8", "replace")) % 2:
        for named in (case.path_parameters or {}, case.query or {}):
            named.update({name: there[name] for name in named if name in there})


def ask_everything(document: Any, ask: Callable[[Any], None]) -> list[str]:
    """Some odd requests of every operation; the operations' names. (By hand: one server serves them all.)"""
    asked = []
    for found in document.get_all_operations():
        operation = found.ok()
        QUICK(given(case=operation.as_strategy())(ask))()
        asked.append(operation.label)
    assert len(asked) > 15
    return asked


def test_no_request_is_too_odd(document: Any, there: dict[str, str]) -> None:
    def ask(case: Any) -> None:
        aim(case, there)
        case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS, timeout=30)

    ask_everything(document, ask)


def test_nothing_is_answered_without_authentication(document: Any, there: dict[str, str]) -> None:
    answered = set()

    def ask(case: Any) -> None:
        aim(case, there)
        case.headers.pop("Authorization", None)  # a wrong token, ten times, would be told so instead
        answer = case.call(timeout=30)
        if answer.status_code < 400:
            answered.add(case.operation.label)
        else:
            assert answer.status_code in (400, 401, 413, 422), case.as_curl_command()
            assert set(answer.json()["error"]) == {"code", "message", "problems"}

    ask_everything(document, ask)
    assert answered == {"GET /health"}


def test_the_document_says_what_needs_a_token(served: Served) -> None:
    with served.client() as client:
        paths = client.get("/api/openapi.json").json()["paths"]
    without = {path for path, methods in paths.items() for told in methods.values() if "security" not in told}
    assert without == {"/health", "/api/judging/callback/{batch}"}


def test_the_document_itself_is_behind_the_gate(served: Served) -> None:
    with served.client(token="") as nobody:
        for path in ("/api/openapi.json", "/docs", "/redoc", "/openapi.json", "/experiments", "/mlflow/", "/none"):
            assert nobody.get(path).status_code == 401, path
        assert nobody.get("/health").json() == {"status": "ok"}
        assert nobody.get("/login", headers={"Accept": "text/html"}).status_code == 200


def test_what_is_there_is_unharmed(served: Served, there: dict[str, str]) -> None:
    """After all of that (it is the last test here): the runs are as they were."""
    with served.client() as client:
        board = client.get(f"/api/bench/leaderboard/{EXPERIMENT}")
        assert board.status_code == httpx.codes.OK
        assert client.get(f"/api/bench/runs/{EXPERIMENT}").json()["total"] == 2
        started = client.get("/api/recommend/simulations").json()["simulations"]
        assert [one["id"] for one in started] == [there["simulation_id"]], "what is odd starts nothing"
