"""What of MLflow's server can be reached, and in which dress its answers leave."""

import pytest

from tipbench.server.mlflow_pages.pages import (
    DATA_POLICY,
    PAGES_POLICY,
    refusal,
    request_headers,
    response_headers,
)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("HEAD", "/"),
        ("GET", "/static-files/static/js/main.js"),
        ("GET", "/get-artifact"),
        ("GET", "/ajax-api/2.0/mlflow/experiments/search"),
        ("POST", "/ajax-api/2.0/mlflow/runs/search"),
        ("POST", "/api/2.0/mlflow/runs/set-tag"),
        ("POST", "/ajax-api/2.0/mlflow/runs/delete"),
        ("POST", "/ajax-api/2.0/mlflow/experiments/delete"),
        ("POST", "/graphql"),
    ],
)
def test_looking_and_tidying_up_is_open(method: str, path: str) -> None:
    assert refusal(method, path) == ""


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/2.0/mlflow/experiments/create"),  # names the folder that artifacts are read from
        ("POST", "/api/2.0/mlflow/model-versions/create"),
        ("POST", "/ajax-api/2.0/mlflow/upload-artifact"),
        ("PUT", "/api/2.0/mlflow-artifacts/artifacts/x"),
        ("PATCH", "/api/3.0/mlflow/traces/x/tags"),
        ("POST", "/ajax-api/2.0/mlflow/webhooks"),
        ("POST", "/ajax-api/3.0/mlflow/scorer/invoke"),
        ("POST", "/ajax-api/3.0/mlflow/assistant/message"),
        ("GET", "/ajax-api/3.0/mlflow/assistant/sessions/x/stream"),
        ("GET", "/gateway/mlflow/v1/models"),
        ("POST", "/gateway/x/mlflow/invocations"),
        ("POST", "/ajax-api/3.0/jobs/"),
        ("POST", "/v1/traces"),
        ("POST", "/api/2.0/mlflow/runs/search/x"),
        ("OPTIONS", "/"),
        ("GET", "/static-files/../gateway/x"),
        ("GET", "/./gateway/x"),
        ("GET", "/static-files\\..\\gateway"),
    ],
)
def test_everything_else_is_refused_with_a_sentence(method: str, path: str) -> None:
    assert " " in refusal(method, path)


def test_mlflow_learns_nothing_of_who_asks() -> None:
    given = [
        (b"Accept", b"*/*"),
        (b"content-type", b"application/json"),
        *((name, b"secret") for name in (b"cookie", b"Authorization", b"origin", b"referer", b"x-forwarded-for")),
        (b"connection", b"upgrade"),
        (b"host", b"tips.example"),
    ]
    assert request_headers(given) == [(b"Accept", b"*/*"), (b"content-type", b"application/json")]


def test_pages_run_only_their_own_scripts() -> None:
    headers = response_headers("/", {"Content-Type": "text/html", "Set-Cookie": "a=b", "Transfer-Encoding": "chunked"})
    assert headers == {
        "content-type": "text/html",
        "x-content-type-options": "nosniff",
        "content-security-policy": PAGES_POLICY,
    }
    assert "script-src 'self';" in PAGES_POLICY


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "image/svg+xml", "text/javascript", "text/xml", ""])
@pytest.mark.parametrize(
    "path",
    [
        "/get-artifact",
        "/model-versions/get-artifact",
        "/ajax-api/3.0/mlflow/get-trace-artifact",
        "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/page.html",
        "/ajax-api/2.0/mlflow/logged-models/m/artifacts/files",
    ],
)
def test_an_artifact_is_a_file_to_keep_and_nothing_that_runs(path: str, kind: str) -> None:
    assert response_headers(path, {"content-type": kind, "content-disposition": "inline; filename=page.html"}) == {
        "content-type": "application/octet-stream",
        "content-disposition": "attachment",
        "x-content-type-options": "nosniff",
        "content-security-policy": DATA_POLICY,
    }


def test_an_artifact_that_no_browser_runs_keeps_its_type_and_name() -> None:
    given = {"content-type": "text/plain; charset=utf-8", "content-disposition": "attachment; filename=raw.txt"}
    assert response_headers("/get-artifact", given).items() > given.items()


def test_an_api_answer_is_no_page() -> None:
    headers = response_headers("/ajax-api/2.0/mlflow/runs/get", {"content-type": "text/html"})
    assert headers["content-security-policy"] == DATA_POLICY
