"""Sessions: good as they were given, and in no other form, time or circumstance."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import Response

from tests.web.small_app import Clock
from tipbench.web.sessions import LIFETIME_S, Sessions, cookie_name, remove_cookie, set_cookie
from tipbench.web.tokens import Grant, Tokens, Visitor

SECRET = b"s" * 32


class Desk:
    def __init__(self, home: Path) -> None:
        self.clock = Clock()
        self.tokens = Tokens(home, self.clock)
        self.sessions = Sessions(SECRET, self.tokens, self.clock)
        self.token = self.tokens.invite("anna")

    def cookie(self) -> str:
        grant = self.tokens.grant_of(self.token)
        assert grant is not None
        return self.sessions.begin(grant)


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    made = Desk(home)
    yield made
    made.tokens.close()


@pytest.fixture(scope="module")
def one_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.tokens.close()


def test_a_session_is_whoever_showed_the_token(desk: Desk) -> None:
    session = desk.sessions.read(desk.cookie())
    assert session is not None
    assert session.visitor == Visitor("judge", "anna")


def test_two_sessions_are_two(desk: Desk) -> None:
    assert desk.cookie() != desk.cookie()


def test_a_cookie_holds_what_it_says_and_no_token(desk: Desk) -> None:
    version, content, _ = desk.cookie().split(".")
    data = json.loads(base64.urlsafe_b64decode(content + "=="))
    assert version == "v1"
    assert set(data) == {"id", "token", "role", "name", "issued_ms", "expires_ms"}
    assert data["expires_ms"] - data["issued_ms"] == 12 * 3600 * 1000
    assert desk.token not in str(data)


def test_a_session_ends_after_twelve_hours(desk: Desk) -> None:
    cookie = desk.cookie()
    desk.clock.now += LIFETIME_S - 1
    assert desk.sessions.read(cookie)
    desk.clock.now += 1
    assert desk.sessions.read(cookie) is None


def test_a_session_from_the_future_is_none(desk: Desk) -> None:
    cookie = desk.cookie()
    desk.clock.now -= 61
    assert desk.sessions.read(cookie) is None


def test_a_session_ends_with_its_token(desk: Desk) -> None:
    cookie = desk.cookie()
    desk.tokens.revoke("anna")
    assert desk.sessions.read(cookie) is None
    desk.token = desk.tokens.invite("anna")
    assert desk.sessions.read(cookie) is None
    assert desk.sessions.read(desk.cookie())


def test_who_signs_out_ends_that_session_alone_and_for_good(desk: Desk) -> None:
    mine, other = desk.cookie(), desk.cookie()
    session = desk.sessions.read(mine)
    assert session is not None
    desk.sessions.end(session)
    assert desk.sessions.read(mine) is None
    assert desk.sessions.read(other)
    assert Sessions(SECRET, desk.tokens, desk.clock).read(mine) is None


def test_ended_sessions_are_forgotten_once_they_are_over_anyway(desk: Desk) -> None:
    ended = []
    for _ in range(2):
        session = desk.sessions.read(desk.cookie())
        assert session is not None
        desk.sessions.end(session)
        ended.append(session.id)
        desk.clock.now += LIFETIME_S + 1
    assert [desk.tokens.session_ended(session_id) for session_id in ended] == [False, True]


def test_another_servers_cookie_is_none(desk: Desk) -> None:
    assert Sessions(b"t" * 32, desk.tokens, desk.clock).read(desk.cookie()) is None


def test_a_signed_cookie_can_not_lend_another_role(desk: Desk) -> None:
    grant = desk.tokens.grant_of(desk.token)
    assert grant is not None
    assert desk.sessions.read(desk.sessions.begin(Grant(grant.id, Visitor("admin", "anna")))) is None


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_no_changed_cookie_is_good(one_desk: Desk, data: st.DataObject) -> None:
    cookie = one_desk.cookie()
    at = data.draw(st.integers(0, len(cookie) - 1))
    put = data.draw(st.text(st.sampled_from("AZaz09-_.=é\n"), max_size=2))
    changed = cookie[:at] + put + cookie[at + data.draw(st.integers(0, 2)) :]
    assert (one_desk.sessions.read(changed) is not None) == (changed == cookie)


@settings(deadline=None, max_examples=100)
@given(cookie=st.text())
def test_no_made_up_cookie_is_good(one_desk: Desk, cookie: str) -> None:
    assert one_desk.sessions.read(cookie) is None


def test_the_csrf_token_is_the_sessions_own(desk: Desk) -> None:
    sessions = [desk.sessions.read(desk.cookie()) for _ in range(2)]
    tokens = {desk.sessions.csrf_token(session) for session in sessions if session}
    assert len(tokens) == 2
    assert all(len(token) == 43 for token in tokens)
    assert not [s for s in sessions if s and s.id in tokens]


@pytest.mark.parametrize(
    ("scheme", "name", "attributes"),
    [
        ("http", "tipbench_session_8765", {"HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict"}),
        ("https", "__Host-tipbench_session_8765", {"HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict", "Secure"}),
    ],
)
def test_the_cookie_is_for_this_server_and_no_script(scheme: str, name: str, attributes: set[str]) -> None:
    response = Response()
    scope = {"scheme": scheme, "server": ("127.0.0.1", 8765)}
    set_cookie(response, "value", scope)
    first, *rest = response.headers["set-cookie"].split("; ")
    assert first == f"{name}=value"
    assert set(rest) == attributes
    assert cookie_name(scope) == name


def test_servers_at_two_ports_have_two_cookies() -> None:
    """A browser sends all cookies of a host to all of its ports."""
    names = {cookie_name({"scheme": "http", "server": ("127.0.0.1", port)}) for port in (8765, 9000)}
    assert len(names) == 2


def test_signing_out_takes_the_cookie_away() -> None:
    response = Response()
    remove_cookie(response, {"scheme": "https", "server": ("127.0.0.1", 8765)})
    assert response.headers["set-cookie"].startswith('__Host-tipbench_session_8765=""')
    assert "Max-Age=0" in response.headers["set-cookie"]
