"""The gate: who gets what, by bearer and by cookie, and what everybody else is told."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import Message

from tests.web.small_app import BROWSER, OWN_PAGE, RULES, Caller, Site, make_site
from tests.web.test_paths import PIECES
from tipbench.web.paths import matches_any

HTMX = {"hx-request": "true", "accept": "*/*"}


@pytest.mark.parametrize("path", ["/health", "/static/app.css"])
def test_open_paths_are_answered(site: Site, path: str) -> None:
    answer = site.call("GET", path)
    assert (answer.status, answer.text) == (200, "nobody")


@pytest.mark.parametrize("path", ["/api/things", "/api/unknown", "/api/judging/me", "/api", "/openapi.json", "/docs"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_nothing_else_is_without_a_token_known_or_not(site: Site, path: str, method: str) -> None:
    answer = site.call(method, path)
    assert answer.status == 401
    assert answer.error["code"] == "unauthorized"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_answers_to_strangers_do_not_tell_what_is_there(site: Site) -> None:
    known, unknown = site.call("GET", "/api/things"), site.call("GET", "/api/unknown")
    assert known == unknown
    known, unknown = site.call("GET", "/forgotten"), site.call("GET", "/unknown")
    assert known == unknown


def test_a_bearer_token_opens(site: Site) -> None:
    assert site.call("GET", "/api/things", site.bearer()).text == "admin person"
    assert site.call("GET", "/forgotten", site.bearer()).text == "admin person"
    assert site.call("POST", "/forgotten", site.bearer()).status == 200
    assert site.call("GET", "/api/things", {"authorization": f"bearer  {site.admin} "}).status == 200


def test_what_is_not_there_is_not_found_by_an_admin(site: Site) -> None:
    answer = site.call("GET", "/api/unknown", site.bearer())
    assert (answer.status, answer.error["message"]) == (404, "there is nothing at /api/unknown")


def test_a_judge_gets_the_judging_pages_and_nothing_else(site: Site) -> None:
    judge = site.bearer(site.judge)
    assert site.call("GET", "/judging/sheet", judge).text == "judge anna"
    assert site.call("GET", "/api/judging/me", judge).text == '"anna"'
    assert site.call("GET", "/", judge).status == 200
    refused = [
        site.call("GET", path, judge) for path in ("/api/things", "/api/unknown", "/forgotten", "/judgings", "/mlflow/")
    ]
    assert {answer.status for answer in refused} == {403}
    assert len({answer.body for answer in refused}) == 1
    assert refused[0].error == {"code": "forbidden", "message": "this is for admins only", "problems": []}


def test_a_handler_may_ask_for_an_admin_once_more(site: Site) -> None:
    path = "/api/admin-only-by-dependency"
    assert site.call("GET", path, site.bearer()).text == '"person"'
    assert site.call("GET", path, site.bearer(site.judge)).error["message"] == "this is for admins only"


@pytest.mark.parametrize("given", ["Bearer wrong", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "", "Bearer é"])
def test_a_bad_bearer_is_refused_even_beside_a_good_cookie(site: Site, given: str) -> None:
    answer = site.call("GET", "/api/things", {**site.signed_in(), "authorization": given})
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "wrong" not in answer.text
    page = site.call("GET", "/forgotten", {**site.signed_in(), **BROWSER, "authorization": given})
    assert page.status == 401


def test_two_bearers_are_none(site: Site) -> None:
    header = ("authorization", f"Bearer {site.admin}")
    assert site.call("GET", "/api/things", [header]).status == 200
    assert site.call("GET", "/api/things", [header, header]).status == 401


def test_open_paths_are_no_way_to_try_tokens(site: Site) -> None:
    good, bad = (site.call("GET", "/health", site.bearer(token)) for token in (site.admin, "bad"))
    assert good == bad


def test_on_open_paths_a_cookie_tells_who_reads_and_lets_nobody_change_anything(site: Site) -> None:
    assert site.call("GET", "/health", site.signed_in()).text == "admin person"
    assert site.call("POST", "/health", site.own_request()).text == "nobody"


def test_a_revoked_token_is_refused_at_once(site: Site) -> None:
    cookie = site.signed_in(site.judge)
    assert site.call("GET", "/judging", site.bearer(site.judge)).status == 200
    assert site.call("GET", "/judging", cookie).status == 200
    site.access.tokens.revoke("anna")
    assert site.call("GET", "/judging", site.bearer(site.judge)).status == 401
    assert site.call("GET", "/judging", cookie).status == 401


def test_too_many_failures_are_told_to_wait_and_right_tokens_never(site: Site) -> None:
    other = Caller(site.app, address="203.0.113.99")
    assert other("GET", "/api/things", site.bearer(site.judge)).status == 403
    for number in range(10):
        assert other("GET", "/api/things", site.bearer(f"guess {number}")).status == 401
    assert other("GET", "/api/things", site.bearer()).status == 200, "a right one, which was never here before"
    refused = other("GET", "/api/things", site.bearer("guess 10"))
    assert refused.status == 429
    assert refused.headers["retry-after"] == "300"
    assert refused.error["code"] == "too_many_attempts"
    assert other("GET", "/api/judging/me", site.bearer(site.judge)).status == 200
    assert other("GET", "/api/things", site.signed_in()).status == 200
    assert site.call("GET", "/api/things", site.bearer()).status == 200
    site.clock.now += 300
    assert other("GET", "/api/things", site.bearer("guess 11")).status == 401


def test_a_client_with_a_revoked_token_keeps_nobody_out(site: Site) -> None:
    site.access.tokens.revoke("anna")
    new = site.access.tokens.renew_admin()
    for _ in range(50):
        assert site.call("GET", "/judging", site.bearer(site.judge)).status in (401, 429)
        assert site.call("GET", "/api/things", site.bearer(site.admin)).status in (401, 429)
        assert site.call("GET", "/api/things", site.bearer(new)).status == 200


def test_sessions_that_are_over_are_not_attempts(site: Site) -> None:
    cookie = site.signed_in()
    site.clock.now += 13 * 3600
    for _ in range(20):
        assert site.call("GET", "/api/things", cookie).status == 401
    assert site.call("GET", "/api/things", site.bearer()).status == 200


def test_a_cookie_opens_pages_and_api(site: Site) -> None:
    assert site.call("GET", "/forgotten", site.signed_in()).text == "admin person"
    assert site.call("GET", "/api/things", site.signed_in()).text == "admin person"
    assert site.call("GET", "/judging", site.signed_in(site.judge)).text == "judge anna"
    assert site.call("GET", "/api/things", site.signed_in(site.judge)).status == 403


def test_over_https_only_the_cookie_that_is_bound_to_the_host_counts(site: Site) -> None:
    secure = Caller(site.app, scheme="https")
    assert secure("GET", "/forgotten", {"cookie": f"__Host-tipbench_session_8080={site.cookie()}"}).status == 200
    assert secure("GET", "/forgotten", site.signed_in()).status == 401
    assert site.call("GET", "/forgotten", {"cookie": f"__Host-tipbench_session_8080={site.cookie()}"}).status == 401


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/forgotten", "/login?next=/forgotten"),
        ("/unknown?a=1&b=2", "/login?next=/unknown%3Fa%3D1%26b%3D2"),
        ("/runs/a%2Fb", "/login?next=/runs/a%252Fb"),
        ("/", "/login"),
    ],
)
def test_a_browser_is_sent_to_the_login_page_and_back(site: Site, target: str, location: str) -> None:
    answer = site.call("GET", target, BROWSER)
    assert (answer.status, answer.headers["location"]) == (303, location)
    answer = site.call("GET", target, {**BROWSER, "cookie": "tipbench_session_8080=over"})
    assert (answer.status, answer.headers["location"]) == (303, location)


def test_other_methods_and_programs_are_not_sent_anywhere(site: Site) -> None:
    assert site.call("GET", "/forgotten", {"accept": "*/*"}).status == 401
    post = site.call("POST", "/forgotten", BROWSER)
    assert post.status == 401
    assert post.text == "<p>401 for nobody: your session has expired, or you have not logged in; log in []</p>"


@pytest.mark.parametrize(
    ("current", "location"),
    [
        ("http://bench.example:8080/jobs/7?x=1", "/login?next=/jobs/7%3Fx%3D1"),
        ("http://bench.example//evil.example/x", "/login"),
        ("http://[", "/login"),
        ("", "/login"),
    ],
)
def test_htmx_is_told_where_to_take_the_whole_page(site: Site, current: str, location: str) -> None:
    answer = site.call("GET", "/jobs/7/live", {**HTMX, "hx-current-url": current})
    assert (answer.status, answer.headers["hx-redirect"]) == (401, location)


@pytest.mark.parametrize(
    "target",
    [
        "//api/things",
        "/api/../api/things",
        "/static/../api/things",
        "/static/%2e%2e/api/things",
        "/static/..%2fapi/things",
        "/%2Fapi/things",
        "/api//things",
        "/static\\..\\api",
        "/static/%00",
    ],
)
@pytest.mark.parametrize("who", ["nobody", "admin"])
def test_crooked_paths_are_refused_whoever_asks(site: Site, target: str, who: str) -> None:
    answer = site.call("GET", target, site.bearer() if who == "admin" else {})
    assert answer.status == 400


@pytest.mark.parametrize(
    "target", ["/API/things", "/Api/things", "/HEALTH", "/health/", "/login/", "/Static/app.css", "/STATIC/"]
)
def test_other_spellings_open_nothing(site: Site, target: str) -> None:
    assert site.call("GET", target).status == 401


def test_an_encoded_slash_is_a_slash_to_gate_and_router_alike(site: Site) -> None:
    assert site.call("GET", "/api%2Fthings").status == 401
    assert site.call("GET", "/api%2Fthings", site.bearer(site.judge)).status == 403
    assert site.call("GET", "/api%2Fthings", site.bearer()).text == "admin person"


@pytest.fixture(scope="module")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return make_site(tmp_path_factory.mktemp("home"))


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES, judge=st.booleans())
def test_no_path_leads_around_the_gate(one_site: Site, pieces: list[str], judge: bool) -> None:
    """Whatever path is asked for, only what the table opens is answered."""
    target = "/" + "".join(pieces).encode("ascii", "ignore").decode().replace("?", "").replace("#", "")
    answer = one_site.call("GET", target, one_site.bearer(one_site.judge) if judge else {})
    allowed = [*RULES.open, "/login", *(RULES.judges if judge else [])]
    if answer.status not in (400, 401, 403):
        assert matches_any(target, allowed) or matches_any(target.replace("%2f", "/"), allowed)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_cookie_alone_changes_nothing(site: Site, method: str) -> None:
    whole = site.own_request()
    assert site.call(method, "/forgotten", whole).status == 200
    for left_out in ("x-csrf-token", "origin"):
        partly = {name: value for name, value in whole.items() if name != left_out}
        answer = site.call(method, "/forgotten", partly)
        assert answer.status == 403
        assert answer.error["message"].startswith("the request did not come from one of this server's pages")


@pytest.mark.parametrize(
    "forged",
    [
        {"x-csrf-token": "wrong"},
        {"x-csrf-token": ""},
        {"x-csrf-token": "é"},
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_another_sites_page_changes_nothing(site: Site, forged: dict[str, str]) -> None:
    assert site.call("POST", "/api/judging/scores", {**site.own_request(site.judge), **forged}).status == 403


def test_another_sessions_token_is_not_this_ones(site: Site) -> None:
    other = site.own_request()["x-csrf-token"]
    assert site.call("POST", "/forgotten", {**site.own_request(), "x-csrf-token": other}).status == 403


def test_reading_needs_no_token_of_the_page(site: Site) -> None:
    cookie = site.signed_in()
    assert site.call("GET", "/forgotten", {**cookie, "sec-fetch-site": "cross-site"}).status == 200
    assert site.call("GET", "/csrf", site.own_request()).status == 200


def test_pages_know_their_token(site: Site) -> None:
    own = site.own_request()
    assert site.call("GET", "/csrf", own).text == f'"{own["x-csrf-token"]}"'
    assert site.call("GET", "/csrf", site.bearer()).text == '""'


def test_foreign_pages_are_checked_by_origin_alone(site: Site) -> None:
    cookie = site.signed_in()
    assert site.call("POST", "/mlflow/api", {**cookie, **OWN_PAGE}).status == 200
    assert site.call("POST", "/mlflow/api", {**cookie, "sec-fetch-site": "same-origin"}).status == 200
    assert site.call("POST", "/mlflow/api", {**cookie, **OWN_PAGE, "origin": "http://evil.example"}).status == 403
    assert site.call("POST", "/mlflow/api", cookie).status == 403


def test_a_websocket_is_closed_before_anything_hears_of_it(site: Site) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {site.admin}".encode())]
    scope = {"type": "websocket", "path": "/api/things", "headers": headers, "query_string": b"", "scheme": "ws"}
    asyncio.run(site.app(scope, receive, send))
    assert [(message["type"], message["code"]) for message in sent] == [("websocket.close", 1008)]
