"""The REST client's difference to MLflow itself: headers it sends, and errors it turns into ours."""

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.bench.engines.stand_in import free_address
from tipbench.bench.tracking import mlflow_client
from tipbench.bench.tracking.interface import Metric
from tipbench.bench.tracking.mlflow_client import MlflowClient
from tipbench.core.errors import TrackingError, TrackingRefused, TrackingUnreachable
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials

HOST_CHECK = httpx.Response(403, text="Invalid Host header - possible DNS rebinding attack detected")
SECRET = "hunter2"


class Server:
    """Answers with one response, and keeps what it was sent."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self.responses = list(responses or [httpx.Response(200, json={"experiments": []})])

    def client(self, url: str = "http://box:5000", **environment: str) -> MlflowClient:
        return MlflowClient(url, Settings(environment), httpx.MockTransport(self._answer))

    def refusal(self, url: str = "http://box:5000", **environment: str) -> TrackingError:
        with pytest.raises(TrackingError) as caught:
            self.client(url, **environment).list_experiments("")
        return caught.value

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def sent(url: str = "http://box:5000", **environment: str) -> httpx.Request:
    server = Server()
    server.client(url, **environment).list_experiments("")
    return server.requests[0]


def test_a_plain_request() -> None:
    request = sent()
    assert str(request.url) == "http://box:5000/api/2.0/mlflow/experiments/search"
    assert request.headers["Host"] == "box:5000"
    assert "Origin" not in request.headers  # MLflow's check refuses strangers by it
    assert "Authorization" not in request.headers


def test_the_host_header_can_be_overruled() -> None:
    request = sent(TIPBENCH_MLFLOW_HOST="localhost")
    assert (request.headers["Host"], request.url.host) == ("localhost", "box")


@pytest.mark.parametrize("url", ["http://box:5000/mlflow", "http://box:5000/mlflow/"])
def test_a_path_in_the_address_is_the_servers_prefix(url: str) -> None:
    assert sent(url).url.path == "/mlflow/api/2.0/mlflow/experiments/search"
    server = Server(httpx.Response(200, content=b"{}"))
    client = server.client(url)
    client.put_files("mlflow-artifacts:/3/abc/artifacts", {"raw ü.txt": b"x"})
    assert server.requests[0].url.raw_path == (
        b"/mlflow/api/2.0/mlflow-artifacts/artifacts/3/abc/artifacts/raw%20%C3%BC.txt"
    )


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("http://box", {"MLFLOW_TRACKING_TOKEN": "t0"}, "Bearer t0"),
        ("http://box", {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": SECRET}, basic("me", SECRET)),
        ("http://box", {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_TOKEN": "t0"}, basic("me", "")),
        ("http://me:p%40ss%2F@box", {"MLFLOW_TRACKING_USERNAME": "other"}, basic("me", "p@ss/")),
    ],
)
def test_credentials_are_sent(url: str, environment: dict[str, str], expected: str) -> None:
    assert sent(url, **environment).headers["Authorization"] == expected


@pytest.mark.parametrize(
    "url",
    [f"http://me:{SECRET}@box:5000", f"http://me:{SECRET}@@box:5000", f"http://{SECRET}@box:5000/"],
)
def test_credentials_are_never_shown(url: str) -> None:
    assert Server().client(url).address == without_credentials(url) == "http://box:5000"
    faults = (HOST_CHECK, httpx.Response(401), httpx.Response(500, text="<html>"), httpx.ConnectError("refused"))
    for fault in faults:
        assert SECRET not in str(Server(fault).refusal(url))


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{SECRET}#x@box",
        f"http://me:12/{SECRET}@box",
        f"http://me:?{SECRET}@box",
        f"http://me:{SECRET}@box:x",
    ],
)
def test_a_secret_that_breaks_the_address_is_not_shown_either(url: str) -> None:
    with pytest.raises(TrackingUnreachable) as caught:
        MlflowClient(url, Settings({}))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["http://[bad", "http://box:port"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(TrackingUnreachable, match="is not the address of an MLflow server"):
        MlflowClient(url, Settings({})).list_experiments("")


@pytest.mark.parametrize("name", ["MLFLOW_TRACKING_TOKEN", "TIPBENCH_MLFLOW_HOST"])
@pytest.mark.parametrize("value", [f"{SECRET}\nx", f"{SECRET}é"])
def test_a_header_that_can_not_be_sent(name: str, value: str) -> None:
    with pytest.raises(TrackingRefused, match=name) as caught:
        MlflowClient("http://box", Settings({name: value}))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "environment", "host", "here"),
    [
        ("http://box:5000", {}, "box:5000", "TIPBENCH_MLFLOW_HOST=localhost"),
        ("https://mlflow.example/mlflow", {}, "mlflow.example", "TIPBENCH_MLFLOW_HOST=localhost"),
        ("http://me:hunter2@box:5000", {}, "box:5000", "TIPBENCH_MLFLOW_HOST=localhost"),
        ("http://box:5000", {"TIPBENCH_MLFLOW_HOST": "other"}, "other", "TIPBENCH_MLFLOW_HOST=localhost"),
        ("http://localhost:5000", {}, "localhost:5000", "TIPBENCH_MLFLOW_HOST to a name that it accepts"),
    ],
)
def test_the_host_check_says_both_ways_out_to_the_letter(
    url: str, environment: dict[str, str], host: str, here: str
) -> None:
    error = Server(HOST_CHECK).refusal(url, **environment)
    assert isinstance(error, TrackingRefused)
    assert f"start it with --allowed-hosts '{host},localhost:*'" in str(error)
    assert f"MLFLOW_SERVER_ALLOWED_HOSTS={host},localhost:*;" in str(error)
    assert f"set {here} here" in str(error)
    assert SECRET not in str(error)


NOT_THERE = httpx.Response(404, json={"detail": "Not Found"})
DEFAULT = httpx.Response(200, json={"experiment": {"experiment_id": "0", "name": "Default"}})
NONE = httpx.Response(200, json={})


@pytest.mark.parametrize(
    "elsewhere",
    [NOT_THERE, httpx.Response(405), httpx.Response(200, text="<html>", headers={"Content-Type": "text/html"})],
)
@pytest.mark.parametrize(
    "found", [DEFAULT, httpx.Response(404, json={"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "deleted"})]
)
def test_a_server_at_mlflow_is_found_there(elsewhere: httpx.Response, found: httpx.Response) -> None:
    server = Server(elsewhere, found, NONE)
    client = server.client("http://me:hunter2@box:5000")
    for _ in range(2):
        assert client.list_experiments("") == []
    assert [request.url.path for request in server.requests] == [
        "/api/2.0/mlflow/experiments/search",
        "/mlflow/api/2.0/mlflow/experiments/get-by-name",
        "/mlflow/api/2.0/mlflow/experiments/search",
        "/mlflow/api/2.0/mlflow/experiments/search",
    ]
    assert {request.url.host for request in server.requests} == {"box"}
    assert client.address == "http://box:5000", "locks, journals and caches go by it"
    assert client.under_prefix == "http://box:5000/mlflow"


@pytest.mark.parametrize("found", [NOT_THERE, NONE, httpx.Response(200, json=[]), httpx.Response(200, text="<html>")])
def test_where_nothing_is_at_mlflow_either_the_first_answer_counts(found: httpx.Response) -> None:
    server = Server(NOT_THERE, found, NOT_THERE)
    client = server.client()
    for _ in range(2):
        with pytest.raises(TrackingError, match="--static-prefix"):
            client.list_experiments("")
    assert len(server.requests) == 3, "it is looked for once"
    assert client.under_prefix == ""


@pytest.mark.parametrize(
    ("url", "first"),
    [
        ("http://box:5000/bench", NOT_THERE),  # whoever names a path means it
        ("http://box:5000", NONE),
        ("http://box:5000", httpx.Response(404, json={"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no"})),
        ("http://box:5000", httpx.Response(503)),
        ("http://box:5000", HOST_CHECK),
    ],
)
def test_a_server_that_is_there_is_looked_for_nowhere_else(url: str, first: httpx.Response) -> None:
    server = Server(first)
    with suppress(TrackingError):
        server.client(url).list_experiments("")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_missing_credentials(status: int) -> None:
    error = Server(httpx.Response(status, text="You are not authenticated.")).refusal()
    assert isinstance(error, TrackingRefused)
    assert "MLFLOW_TRACKING_USERNAME" in str(error)


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (httpx.Response(500, text="<!doctype html>\n<h1>Internal Server Error</h1>\x1b[2J"), "is it an MLflow server"),
        (httpx.Response(404, json={"detail": "Not Found"}), "--static-prefix"),
        (httpx.Response(404, json=["odd"]), "--static-prefix"),
        (httpx.Response(200, text="<html>welcome</html>"), "is not an MLflow server"),
        (httpx.Response(200, content=b"[" * 100_000), "is not an MLflow server"),
        (httpx.Response(200, json=[]), "is not an MLflow server"),
        (httpx.Response(200, json={"experiments": [{"odd": 1}]}), "is not an MLflow server"),
        (httpx.Response(302, headers={"Location": "/login"}), "redirects to another address"),
        (httpx.Response(400, json={"error_code": "INVALID", "message": "too\nlong"}), "refused: too long"),
        (httpx.Response(500, json={"error_code": "INTERNAL_ERROR", "message": None}), "refused: None"),
    ],
)
def test_answers_that_are_not_mlflows(response: httpx.Response, says: str) -> None:
    message = str(Server(response).refusal())
    assert says in message
    assert message.isprintable()
    assert len(message) < 500


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        httpx.DecodingError("no gzip"),
    ],
)
def test_broken_connections(error: Exception) -> None:
    told = Server(error).refusal()
    assert isinstance(told, TrackingUnreachable)
    assert "http://box:5000 can't be reached" in str(told)


def test_nothing_at_the_address() -> None:
    client = MlflowClient(free_address(), Settings({}))
    with pytest.raises(TrackingUnreachable, match="start it with 'mlflow server', or choose another with --mlflow-url"):
        client.list_experiments("")
    client.close()


@pytest.mark.parametrize("call", ["find", "create_run", "search"])
def test_a_server_that_answers_everything_with_json_of_its_own(call: str) -> None:
    client = Server(httpx.Response(200, json={"runs": [{"status": "ok"}]})).client()
    calls: dict[str, Callable[[], Any]] = {
        "find": lambda: client.find_experiment("a"),
        "create_run": lambda: client.create_run("1", "a", 0, {}),
        "search": lambda: list(client.search_runs("1", {})),
    }
    with pytest.raises(TrackingError, match="is not an MLflow server"):
        calls[call]()


def test_pages_are_followed_to_the_end_and_each_run_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_client, "_PAGE", 2)

    def page(*runs: str, token: str | None = None) -> httpx.Response:
        found = [{"info": {"run_id": run, "status": "FINISHED"}} for run in runs]
        return httpx.Response(200, json={"runs": found, **({"next_page_token": token} if token else {})})

    server = Server(page("a", "b", token="t1"), page("b", "c", token="t2"), httpx.Response(200, json={}))
    assert [run.run_id for run in server.client().search_runs("1", {})] == ["a", "b", "c"]
    bodies = [json.loads(request.content) for request in server.requests]
    assert [(body["max_results"], body.get("page_token")) for body in bodies] == [(2, None), (2, "t1"), (2, "t2")]


def test_a_metric_goes_out_with_its_step_and_a_bare_nan_never() -> None:
    server = Server(httpx.Response(200, json={}))
    server.client().log_batch("r", [Metric("composite", 2.0, 7, 3)], {}, {})
    [metric] = json.loads(server.requests[0].content)["metrics"]
    assert metric == {"key": "composite", "value": 2.0, "timestamp": 7, "step": 3}
    with pytest.raises(ValueError, match="not JSON compliant"):
        server.client().log_batch("r", [Metric("composite", float("nan"), 7, 3)], {}, {})


def test_only_served_artifacts_can_be_reached() -> None:
    client = Server().client()
    assert client.can_store_files("mlflow-artifacts:/1/a/artifacts")
    assert not client.can_store_files("/srv/mlflow/1/a/artifacts")
    assert not client.can_store_files("s3://bucket/1")


def test_certificates(tmp_path: Any) -> None:
    with pytest.raises(TrackingRefused, match="MLFLOW_TRACKING_SERVER_CERT_PATH"):
        MlflowClient("https://box", Settings({"MLFLOW_TRACKING_SERVER_CERT_PATH": str(tmp_path / "none.pem")}))
    MlflowClient("https://box", Settings({"MLFLOW_TRACKING_INSECURE_TLS": "true"})).close()
