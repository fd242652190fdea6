"""Tokens and attempts together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.small_app import Clock
from tipbench.web.attempts import TooManyAttempts
from tipbench.web.authentication import Access, open_access

HERE = "203.0.113.5"


@pytest.fixture
def access(home: Path, clock: Clock) -> Iterator[Access]:
    made = open_access(home, clock)
    yield made
    made.tokens.close()


def test_a_revoked_token_counts_as_a_failure_and_keeps_nobody_out(access: Access) -> None:
    token = access.tokens.invite("anna")
    assert access.grant_of(token, HERE)
    access.tokens.revoke("anna")
    for _ in range(10):
        assert access.grant_of(token, HERE) is None
    with pytest.raises(TooManyAttempts) as caught:
        access.grant_of(token, HERE)
    assert caught.value.wait_s == 300
    assert access.grant_of(access.tokens.invite("bob"), HERE)


def test_a_session_outlives_a_restart(access: Access, home: Path, clock: Clock) -> None:
    token = access.tokens.ensure_admin()
    grant = access.grant_of(token or "", HERE)
    assert grant is not None
    cookie = access.sessions.begin(grant)
    again = open_access(home, clock)
    session = again.sessions.read(cookie)
    assert session is not None
    assert session.visitor.is_admin
    again.tokens.close()
