"""Plain forms: read with limits, and only from our own pages."""

import json
from urllib.parse import urlencode

import pytest

from tests.web.small_app import Answer, Site

FORM = {"content-type": "application/x-www-form-urlencoded"}


def _post(site: Site, fields: dict[str, str], token_in: str, who: str = "") -> Answer:
    headers = {**site.own_request(who), **FORM}
    csrf = headers.pop("x-csrf-token")
    if token_in == "field":
        fields = {**fields, "csrf": csrf}
    elif token_in == "header":
        headers["x-csrf-token"] = csrf
    elif token_in == "wrong":
        fields = {**fields, "csrf": csrf[:-1] + ("A" if csrf[-1] != "A" else "B")}
    return site.call("POST", "/judging/begin", headers, urlencode(fields).encode())


@pytest.mark.parametrize("token_in", ["field", "header"])
def test_a_form_with_its_token_is_read(site: Site, token_in: str) -> None:
    answer = _post(site, {"name": "Größe & mehr", "empty": ""}, token_in, site.judge)
    assert answer.status == 200
    assert json.loads(answer.body) == {"name": ["Größe & mehr"], "empty": [""]}


@pytest.mark.parametrize("token_in", ["nowhere", "wrong"])
def test_a_form_without_it_is_refused(site: Site, token_in: str) -> None:
    answer = _post(site, {"name": "x"}, token_in)
    assert answer.status == 403
    assert answer.error["message"].startswith("the request did not come from")


def test_a_form_from_another_site_is_refused_whatever_it_brings(site: Site) -> None:
    headers = {**site.own_request(), **FORM, "origin": "http://evil.example"}
    body = urlencode({"csrf": headers["x-csrf-token"]}).encode()
    assert site.call("POST", "/judging/begin", headers, body).status == 403


def test_a_program_with_a_bearer_needs_no_token_of_a_page(site: Site) -> None:
    assert site.call("POST", "/judging/begin", {**site.bearer(), **FORM}, b"a=1").body == b'{"a":["1"]}'


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/plain", ""])
def test_another_kind_of_body_is_no_form(site: Site, kind: str) -> None:
    headers = {**site.own_request(), "content-type": kind}
    assert site.call("POST", "/judging/begin", headers, b"{}").status == 415


def test_a_form_of_thousands_of_fields_is_refused(site: Site) -> None:
    answer = site.call("POST", "/judging/begin", {**site.bearer(), **FORM}, b"a=1&" * 501)
    assert (answer.status, answer.error["message"]) == (400, "a form has at most 500 fields")


def test_bytes_that_are_no_text_break_nothing(site: Site) -> None:
    answer = site.call("POST", "/judging/begin", {**site.bearer(), **FORM}, b"a=%ff\xff")
    assert json.loads(answer.body) == {"a": ["\ufffd\ufffd"]}
