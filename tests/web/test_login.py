"""Signing in by a form and out again."""

from urllib.parse import urlencode

import pytest

from tests.web.small_app import BROWSER, HERE, OWN_PAGE, Answer, Caller, Site

FORM = {**OWN_PAGE, "content-type": "application/x-www-form-urlencoded", "accept": "text/html"}


def _sign_in(site: Site, token: str, wanted: str = "/experiments?x=1", address: str = "203.0.113.5") -> Answer:
    body = urlencode({"token": token, "next": wanted}).encode()
    return Caller(site.app, address=address)("POST", "/login", FORM, body)


def _cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].split(";")[0]


def test_the_login_page_is_for_everybody(site: Site) -> None:
    assert site.call("GET", "/login?next=/x", BROWSER).text == "<p>login next=/x problem=</p>"
    assert site.call("GET", "/login?next=//evil.example", BROWSER).text == "<p>login next=/ problem=</p>"


def test_a_token_gives_a_session_and_the_way_back(site: Site) -> None:
    answer = _sign_in(site, f" {site.judge}\n")
    assert (answer.status, answer.headers["location"]) == (303, "/experiments?x=1")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert "Secure" not in answer.headers["set-cookie"]
    assert site.judge not in str(answer)
    assert site.call("GET", "/judging", {"cookie": _cookie_of(answer)}).text == "judge anna"


def test_over_https_the_cookie_is_bound_to_it(site: Site) -> None:
    body = urlencode({"token": site.admin}).encode()
    headers = {**FORM, "origin": f"https://{HERE}"}
    cookie = Caller(site.app, scheme="https")("POST", "/login", headers, body).headers["set-cookie"]
    assert cookie.startswith("__Host-tipbench_session_8080=")
    assert "Secure" in cookie


@pytest.mark.parametrize("wanted", ["//evil.example", "/\\evil.example", "https://evil.example", "/\tx", "/logout"])
def test_nobody_is_sent_elsewhere_after_signing_in(site: Site, wanted: str) -> None:
    assert _sign_in(site, site.admin, wanted).headers["location"] == "/"


def test_a_wrong_token_gives_the_page_once_more(site: Site) -> None:
    answer = _sign_in(site, "wrong")
    assert answer.status == 401
    assert answer.text == "<p>login next=/experiments?x=1 problem=This token is not valid or was revoked.</p>"
    assert "set-cookie" not in answer.headers
    assert _sign_in(site, " ").status == 422


def test_guessing_at_the_form_is_limited_as_guessing_at_the_api_is(site: Site) -> None:
    for number in range(10):
        assert _sign_in(site, f"guess {number}").status == 401
    answer = _sign_in(site, "guess 10")
    assert (answer.status, answer.headers["retry-after"]) == (429, "300")
    assert "Too many failed attempts from this address; try again in 300 s." in answer.text
    assert site.call("GET", "/api/things", site.bearer("guess 11")).status == 429
    assert _sign_in(site, "guess 12", address="203.0.113.6").status == 401


def test_bad_logins_lock_out_no_good_judge_at_the_same_address(site: Site) -> None:
    for number in range(30):
        assert _sign_in(site, f"guess {number}").status in (401, 429)
    assert _sign_in(site, site.judge).status == 303
    assert _sign_in(site, site.admin).status == 303


def test_an_empty_form_is_no_attempt(site: Site) -> None:
    for _ in range(20):
        assert _sign_in(site, "").status == 422
    assert _sign_in(site, site.admin).status == 303


@pytest.mark.parametrize(
    "origin", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]
)
def test_another_site_can_sign_nobody_in(site: Site, origin: dict[str, str]) -> None:
    body = urlencode({"token": site.admin}).encode()
    answer = site.call("POST", "/login", {**FORM, **origin}, body)
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_a_large_form_is_not_read_to_its_end(site: Site) -> None:
    assert site.call("POST", "/login", FORM, [b"x" * 4096] * 3).status == 413


def test_who_is_signed_in_is_sent_on(site: Site) -> None:
    answer = site.call("GET", "/login?next=/jobs", {**BROWSER, **site.signed_in()})
    assert (answer.status, answer.headers["location"]) == (303, "/jobs")
    answer = site.call("GET", "/login?next=//evil.example", {**BROWSER, **site.signed_in()})
    assert (answer.status, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize("who", ["admin", "judge"])
def test_signing_out_ends_the_session(site: Site, who: str) -> None:
    headers = site.own_request(site.admin if who == "admin" else site.judge)
    stolen = {"cookie": headers["cookie"]}
    body = urlencode({"csrf": headers.pop("x-csrf-token")}).encode()
    assert site.call("GET", "/judging", stolen).status == 200
    answer = site.call("POST", "/logout", {**headers, **FORM}, body)
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert site.call("GET", "/judging", stolen).status == 401


def test_another_site_can_sign_nobody_out(site: Site) -> None:
    headers = {**FORM, **site.signed_in()}
    assert site.call("POST", "/logout", headers, b"").status == 403
    assert site.call("POST", "/logout", headers, b"csrf=wrong").status == 403
    assert site.call("GET", "/logout", {**BROWSER, **site.signed_in()}).status == 405
