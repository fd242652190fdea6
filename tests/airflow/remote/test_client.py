"""What the client adds to Airflow's API: who we are, and errors that say what to do next."""

import threading
from collections.abc import Callable

import httpx
import pytest

from tests.airflow.remote.stand_in import ACCESS, PASSWORD, TOKEN, USER, StandIn
from tests.bench.engines.stand_in import free_address
from tipbench.airflow.remote.client import (
    AirflowApi,
    AirflowConflict,
    AirflowError,
    AirflowRefused,
    AirflowUnreachable,
    path_segment,
)
from tipbench.core.errors import InvalidInput, NotFound, RunnerError, RunnerRefused, RunnerUnreachable, TipbenchError
from tipbench.core.settings import Settings

DAG = "/dags/bench_collect"


def always(response: httpx.Response) -> Callable[[httpx.Request], httpx.Response | None]:
    """To everything but a login."""
    return lambda request: None if request.url.path == "/auth/token" else response


def refusal(airflow: StandIn, **environment: str) -> TipbenchError:
    with pytest.raises(TipbenchError) as caught:
        airflow.api(**environment).get(DAG)
    assert PASSWORD not in str(caught.value)
    assert TOKEN not in str(caught.value)
    return caught.value


def test_a_name_and_a_password_become_a_token(airflow: StandIn) -> None:
    api = airflow.api()
    assert api.get(DAG)["dag_id"] == "bench_collect"
    api.get(DAG)
    assert [request.url.path for request in airflow.requests].count("/auth/token") == 1
    assert airflow.requests[-1].headers["Authorization"] == "Bearer token-1"


def test_a_token_that_is_given_is_used_as_it_is(airflow: StandIn) -> None:
    airflow.api(TIPBENCH_AIRFLOW_TOKEN=TOKEN).get(DAG)
    assert [request.headers["Authorization"] for request in airflow.requests] == [f"Bearer {TOKEN}"]


def test_a_token_that_has_run_out_is_renewed_once(airflow: StandIn) -> None:
    api = airflow.api()
    api.get(DAG)
    run_out = httpx.Response(401, json={"detail": "Signature has expired"})
    airflow.fault = lambda request: run_out if request.headers.get("Authorization") == "Bearer token-1" else None
    assert api.get(DAG)["dag_id"] == "bench_collect"
    assert airflow.tokens == 2
    airflow.fault = always(run_out)
    with pytest.raises(AirflowRefused, match="TIPBENCH_AIRFLOW_USERNAME"):
        api.get(DAG)
    assert airflow.tokens == 3


def test_many_threads_log_in_once(airflow: StandIn) -> None:
    api = airflow.api()
    threads = [threading.Thread(target=api.get, args=(DAG,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert airflow.tokens == 1


def test_without_credentials_it_says_which_settings(airflow: StandIn) -> None:
    error = refusal(airflow, TIPBENCH_AIRFLOW_PASSWORD="")
    assert isinstance(error, RunnerRefused)
    for name in ("TIPBENCH_AIRFLOW_USERNAME", "TIPBENCH_AIRFLOW_PASSWORD", "TIPBENCH_AIRFLOW_TOKEN"):
        assert name in str(error)
    assert airflow.requests == []


@pytest.mark.parametrize(
    ("status", "environment", "says"),
    [
        (401, {}, "TIPBENCH_AIRFLOW_USERNAME and TIPBENCH_AIRFLOW_PASSWORD"),
        (401, {"TIPBENCH_AIRFLOW_TOKEN": TOKEN}, "TIPBENCH_AIRFLOW_TOKEN"),
        (403, {}, "the permission, or"),
        (403, {"TIPBENCH_AIRFLOW_TOKEN": TOKEN}, "TIPBENCH_AIRFLOW_TOKEN"),
    ],
)
def test_a_refusal_names_the_setting(airflow: StandIn, status: int, environment: dict[str, str], says: str) -> None:
    airflow.fault = always(httpx.Response(status, json={"detail": f"Forbidden {PASSWORD} {TOKEN}"}))
    error = refusal(airflow, **environment)
    assert isinstance(error, AirflowRefused)
    assert says in str(error)


def test_a_wrong_password_is_told_without_it(airflow: StandIn) -> None:
    error = refusal(airflow, TIPBENCH_AIRFLOW_PASSWORD="wrong-one")
    assert "rejects the user name and password" in str(error)
    assert "wrong-one" not in str(error)
    assert USER not in str(error)


@pytest.mark.parametrize(
    ("response", "kind", "says"),
    [
        (httpx.Response(404, json={"detail": "The Dag was not found"}), NotFound, "The Dag was not found"),
        (httpx.Response(409, json={"detail": {"reason": "Unique constraint"}}), AirflowConflict, "Unique constraint"),
        (httpx.Response(400, json={"detail": "Invalid\ninput\x1b[2J"}), InvalidInput, "Invalid input\\u001b[2J"),
        (
            httpx.Response(422, json={"detail": [{"loc": ["body", "n"], "msg": "Field required", "input": "hunter9"}]}),
            InvalidInput,
            "body.n: Field required",
        ),
        (httpx.Response(500, json={"detail": "x" * 9_000}), AirflowError, "xxx…"),
        (httpx.Response(500, text="<html>\x1b[2J"), AirflowError, "not an answer from Airflow"),
        (httpx.Response(404, text="<html>nginx"), AirflowError, "not an answer from Airflow"),
        (httpx.Response(418, json=["teapot"]), AirflowError, "not an answer from Airflow"),
        (httpx.Response(302, headers={"Location": "/login"}), AirflowError, "redirects to another address"),
        (httpx.Response(502, text="<html>"), AirflowUnreachable, "is temporarily unavailable (502)"),
        (httpx.Response(503), AirflowUnreachable, "is temporarily unavailable (503)"),
        (httpx.Response(200, text="<html>Sign in"), AirflowError, "is not an Airflow 3"),
        (httpx.Response(200, json=[1]), AirflowError, "is not an Airflow 3"),
        (httpx.Response(200, content=b"[" * 100_000), AirflowError, "is not an Airflow 3"),
    ],
)
def test_answers_that_are_no_good(airflow: StandIn, response: httpx.Response, kind: type[Exception], says: str) -> None:
    airflow.fault = always(response)
    error = refusal(airflow)
    assert isinstance(error, kind)
    assert says in str(error)
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert "hunter9" not in str(error)
    assert len(str(error)) < 700


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut")]
)
def test_nobody_there(airflow: StandIn, error: Exception) -> None:
    def break_down(_: httpx.Request) -> httpx.Response:
        raise error

    airflow.fault = break_down
    told = refusal(airflow)
    assert isinstance(told, AirflowUnreachable)
    assert isinstance(told, RunnerUnreachable)
    assert "http://air:8080" in str(told)
    assert "TIPBENCH_AIRFLOW_URL" in str(told)


def test_a_port_where_nothing_listens() -> None:
    with pytest.raises(AirflowUnreachable, match="start its API server"):
        AirflowApi(Settings(ACCESS | {"TIPBENCH_AIRFLOW_URL": free_address()})).get(DAG)


@pytest.mark.parametrize("url", ["nonsense", "ftp://air", "http://[bad", "http://air:port", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(RunnerError):
        AirflowApi(Settings(ACCESS | {"TIPBENCH_AIRFLOW_URL": url})).get(DAG)


def test_a_login_that_is_none(airflow: StandIn) -> None:
    for response, says in (
        (httpx.Response(404, json={"detail": "Not Found"}), "TIPBENCH_AIRFLOW_TOKEN"),
        (httpx.Response(200, text="<html>"), "is not an Airflow 3"),
        (httpx.Response(201, json={"access_token": "a\nb"}), "is not an Airflow 3"),
        (httpx.Response(201, json={}), "is not an Airflow 3"),
    ):
        airflow.fault = lambda _, response=response: response
        assert says in str(refusal(airflow))


def test_credentials_have_no_place_in_the_address() -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_AIRFLOW_URL") as caught:
        AirflowApi(Settings({"TIPBENCH_AIRFLOW_URL": f"http://me:{PASSWORD}@air"}))
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("token", [f"{TOKEN}\nx", f"{TOKEN}é"])
def test_a_token_that_can_not_be_sent(token: str) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_AIRFLOW_TOKEN") as caught:
        AirflowApi(Settings({"TIPBENCH_AIRFLOW_TOKEN": token}))
    assert TOKEN not in str(caught.value)


def test_a_name_leads_nowhere_else() -> None:
    assert path_segment("manual__2026-11-15T20:33:15+00:00") == "manual__2026-11-15T20%3A33%3A15%2B00%3A00"
    assert path_segment("a?b#c%2F") == "a%3Fb%23c%252F"
    assert path_segment("\ud800")
    for name in ("", ".", "..", "../x", "a/b"):
        with pytest.raises(NotFound):
            path_segment(name)


def test_all_methods_go_below_the_api(airflow: StandIn) -> None:
    api = airflow.api(TIPBENCH_AIRFLOW_URL="http://air:8080/")
    airflow.fault = always(httpx.Response(200, json={"a": 1}))
    assert api.post("/x", {"b": 2}) == api.patch("/x", {"b": 2}, mask="m") == {"a": 1}
    assert [str(request.url) for request in airflow.requests[1:]] == [
        "http://air:8080/api/v2/x",
        "http://air:8080/api/v2/x?mask=m",
    ]
    api.close()
