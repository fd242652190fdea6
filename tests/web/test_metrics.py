"""What is counted of requests, and who may read it."""

import pytest
from starlette.exceptions import HTTPException

from tests.web.exposition import samples
from tests.web.small_app import BROWSER, METRICS_TOKEN, Caller, Site
from tipbench.core.errors import InvalidInput, StoreUnreachable, TrackingUnreachable
from tipbench.core.settings import Settings
from tipbench.core.version import __version__
from tipbench.web.authentication import metrics_token
from tipbench.web.metrics import Family, Metrics

REQUESTS = "tipbench_http_requests_total"
DURATIONS = "tipbench_http_request_duration_seconds"
BEARER = {"authorization": f"Bearer {METRICS_TOKEN}"}


def test_requests_are_counted_by_route_and_never_by_path(site: Site) -> None:
    site.app.add_api_route("/api/things/{thing}", lambda thing: thing)
    for path in ("/api/things/secret-1", "/api/things/secret-2", "/nothing/secret-3", "/mlflow/.."):
        site.call("GET", path, site.bearer())
    site.call("GET", "/api/things")
    site.call("BREW", "/api/things/1", site.bearer())
    text = site.call("GET", "/metrics", BEARER).text
    found = samples(text)
    assert "secret" not in text
    assert found[f'{REQUESTS}{{method="GET",route="/api/things/{{thing}}",server="serve",status="200"}}'] == 2
    assert found[f'{REQUESTS}{{method="other",route="/api/things/{{thing}}",server="serve",status="405"}}'] == 1
    statuses = {status: found.sum(REQUESTS, route="unmatched", status=status) for status in ("400", "401", "404")}
    assert statuses == {"400": 1, "401": 1, "404": 1}
    assert found.sum(f"{DURATIONS}_count") == found.sum(REQUESTS) == 6
    labels = 'method="GET",route="/api/things/{thing}",server="serve"'
    assert 0 < found[f"{DURATIONS}_sum{{{labels}}}"] < 60
    bucket = f'{DURATIONS}_bucket{{le="%s",{labels}}}'
    assert found[bucket % "0.001"] <= found[bucket % "0.1"] <= found[bucket % "10"] <= found[bucket % "+Inf"] == 2
    assert found[f'tipbench_build_info{{server="serve",version="{__version__}"}}'] == 1


def test_errors_are_counted_by_what_failed(site: Site) -> None:
    def fail(kind: str) -> None:
        kinds = {"state": StoreUnreachable("x"), "mlflow": TrackingUnreachable("x"), "http": HTTPException(503)}
        raise kinds.get(kind, RuntimeError("x"))

    site.app.add_api_route("/api/fails", fail)
    for kind in ("state", "mlflow", "mlflow", "http", "unknown"):
        assert site.call("GET", f"/api/fails?kind={kind}", site.bearer()).status >= 500
    found = samples(site.call("GET", "/metrics", BEARER).text)
    assert found['tipbench_unhandled_errors_total{server="serve"}'] == 1
    assert found['tipbench_store_errors_total{store="postgresql"}'] == 1  # the site's own store
    assert found['tipbench_store_errors_total{store="mlflow"}'] == 2


def test_the_metrics_token_reads_metrics_and_opens_nothing_else(site: Site) -> None:
    assert site.call("GET", "/metrics", BEARER).status == 200
    assert site.call("GET", "/metrics", site.bearer()).status == 200
    assert site.call("GET", "/metrics", site.bearer(site.judge)).status == 403
    assert site.call("GET", "/metrics").status == 401
    assert site.call("GET", "/metrics", {"authorization": f"Basic {METRICS_TOKEN}"}).status == 401
    assert site.call("GET", "/metrics", [*BEARER.items(), *BEARER.items()]).status == 401
    for method, path in (
        *(("GET", path) for path in ("/", "/forgotten", "/api/things", "/api/judging/me", "/mlflow/", "/metrics/x")),
        *((method, "/metrics") for method in ("POST", "HEAD", "DELETE", "PUT")),
        ("POST", "/api/things"),
    ):
        other = Caller(site.app, address=f"203.0.113.{len(path)}")
        assert other(method, path, BEARER).status == 401, (method, path)
    page = {**BROWSER, "origin": "http://bench.example:8080", "content-type": "application/x-www-form-urlencoded"}
    assert site.call("POST", "/login", page, f"token={METRICS_TOKEN}".encode()).status == 401


def test_attempts_on_metrics_are_limited(site: Site) -> None:
    wrong = {"authorization": f"Bearer {METRICS_TOKEN}x"}
    assert {site.call("GET", "/metrics", wrong).status for _ in range(12)} == {401, 429}
    assert site.call("GET", "/metrics", BEARER).status == 200


@pytest.mark.parametrize("token", ["short", "x" * 19, "twenty characters, with spaces"])
def test_a_token_that_can_be_guessed_or_not_sent_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_METRICS_TOKEN has"):
        metrics_token(Settings({"TIPBENCH_METRICS_TOKEN": token}))


def test_untrusted_labels_are_escaped_and_bounded() -> None:
    family = Family("tipbench_rewarded_total", "x", ("category",))
    metrics = Metrics("recommend", "files", [family])
    hostile = ['a"} 1\nevil_total 7', "\\", "\x1b[2J\u202e", "\ud800", "x" * 5000, "other"]
    for name in (*hostile, *map(str, range(1000))):
        metrics.count(family, metrics.member("category", name, 50))
    found = {key: value for key, value in samples(metrics.text()).items() if "rewarded" in key}
    assert len(found) == 50
    assert max(map(len, found)) < 200
    assert sum(found.values()) == 1006
    assert found['tipbench_rewarded_total{category="other"}'] == 1006 - 50 + 1
    assert found['tipbench_rewarded_total{category="\\\\u001b[2J\\\\u202e"}'.replace("\\\\", "\\")] == 1
    assert found['tipbench_rewarded_total{category="a"} 1 evil_total 7"}'] == 1
