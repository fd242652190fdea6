"""Bodies have a limit, whether they say how long they are or not."""

import pytest

from tests.web.small_app import STALL, Site
from tipbench.web import headers as bodies

CHUNK = b"x" * 100_000


def test_a_body_up_to_the_limit_is_taken(site: Site) -> None:
    assert site.call("POST", "/api/echo", site.bearer(), [CHUNK] * 10).text == "1000000"
    assert site.call("POST", "/api/large/echo", site.bearer(), [CHUNK] * 20).text == "2000000"


@pytest.mark.parametrize(("path", "limit"), [("/api/echo", "1,000,000"), ("/api/large/echo", "2,000,000")])
def test_a_body_that_comes_in_pieces_is_counted(site: Site, path: str, limit: str) -> None:
    answer = site.call("POST", path, site.bearer(), [CHUNK] * 20 + [b"x"])
    assert answer.status == 413
    assert answer.error["code"] == "too_large"
    assert limit in answer.error["message"]


@pytest.mark.parametrize("announced", ["1000001", "9" * 30, "-1", "x"])
def test_a_body_that_is_announced_too_large_is_not_read(site: Site, announced: str) -> None:
    answer = site.call("POST", "/api/echo", {**site.bearer(), "content-length": announced}, [])
    assert answer.status == 413


def test_json_bodies_are_counted_as_well(site: Site) -> None:
    headers = {**site.bearer(), "content-type": "application/json"}
    assert site.call("POST", "/api/things", headers, [CHUNK] * 11).status == 413


def test_a_stranger_is_asked_for_a_token_first(site: Site) -> None:
    assert site.call("POST", "/api/echo", {"content-length": "99999999"}).status == 401


@pytest.mark.parametrize("pauses", [True, False])
def test_a_body_has_to_come_soon(site: Site, monkeypatch: pytest.MonkeyPatch, pauses: bool) -> None:
    monkeypatch.setattr(bodies, "BODY_IDLE_S", 0.1 if pauses else 10.0)
    monkeypatch.setattr(bodies, "BODY_TOTAL_S", 10.0 if pauses else 0.1)
    answer = site.call("POST", "/api/echo", site.bearer(), [CHUNK, STALL])
    assert answer.status == 408
    assert answer.error["code"] == "request_timeout"
    assert answer.headers["connection"] == "close"
