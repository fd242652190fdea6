"""The headers of every answer."""

import pytest
from starlette.responses import Response

from tests.web.small_app import BROWSER, LOOSE_POLICY, Answer, Caller, Site
from tipbench.web.headers import STRICT_POLICY


def _all_kinds(site: Site) -> dict[str, Answer]:
    admin = site.bearer()
    return {
        "open": site.call("GET", "/health"),
        "page": site.call("GET", "/forgotten", admin),
        "static": site.call("GET", "/static/app.css"),
        "foreign": site.call("GET", "/mlflow/", admin),
        "401": site.call("GET", "/api/things"),
        "303": site.call("GET", "/forgotten", BROWSER),
        "400": site.call("GET", "/x/../y"),
        "403": site.call("GET", "/api/things", site.bearer(site.judge)),
        "404": site.call("GET", "/api/unknown", admin),
        "413": site.call("POST", "/api/echo", {**admin, "content-length": "99999999"}),
        "422": site.call("POST", "/api/things", admin),
    }


def test_every_answer_tells_the_browser_to_be_careful(site: Site) -> None:
    for kind, answer in _all_kinds(site).items():
        assert answer.headers["x-content-type-options"] == "nosniff", kind
        assert answer.headers["referrer-policy"] == "no-referrer", kind
        assert answer.headers["cross-origin-opener-policy"] == "same-origin", kind
        assert answer.headers["cross-origin-resource-policy"] == "same-origin", kind
        assert "camera=()" in answer.headers["permissions-policy"], kind
        assert answer.headers["cache-control"] == ("no-cache" if kind == "static" else "no-store"), kind
        policy = LOOSE_POLICY if kind == "foreign" else STRICT_POLICY
        assert answer.headers.getlist("content-security-policy") == [policy], kind
        assert "strict-transport-security" not in answer.headers, kind


def test_our_policy_lets_nothing_in_from_elsewhere_or_inline() -> None:
    directives = dict(directive.split(" ", 1) for directive in STRICT_POLICY.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"
    assert {value for name, value in directives.items() if name.endswith("-src")} <= {
        "'none'",
        "'self'",
        "'self' data:",
    }
    assert directives["script-src"] == directives["form-action"] == directives["connect-src"] == "'self'"


def test_https_is_asked_for_where_it_is_spoken(site: Site) -> None:
    answer = Caller(site.app, scheme="https")("GET", "/health")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize("path", ["/api/own", "/mlflow/own"])
def test_a_stricter_policy_of_an_answers_own_stays(site: Site, path: str) -> None:
    def own() -> Response:
        return Response("", headers={"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "sniff"})

    site.app.add_api_route(path, own)
    headers = site.call("GET", path, site.bearer()).headers
    assert headers.getlist("content-security-policy")[0] == "sandbox"
    assert len(headers.getlist("content-security-policy")) == 2
    assert headers.getlist("x-content-type-options") == ["nosniff"]


def test_a_static_file_may_say_itself_how_long_it_keeps(site: Site) -> None:
    def file() -> Response:
        return Response("", headers={"Cache-Control": "max-age=60"})

    site.app.add_api_route("/static/file", file)
    site.app.add_api_route("/file", file)
    assert site.call("GET", "/static/file").headers["cache-control"] == "max-age=60"
    assert site.call("GET", "/file", site.bearer()).headers["cache-control"] == "no-store"
