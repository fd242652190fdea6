"""Tokens: shown once, stored as digests, void at once when revoked, whoever revoked them."""

import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.web.small_app import Clock
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.web.tokens import JudgeAccess, Tokens, Visitor

ADMIN = Visitor("admin", "person")
GIVEN = "a-token-of-the-admins-own"


def visitor_of(tokens: Tokens, token: str) -> Visitor | None:
    grant = tokens.grant_of(token)
    return grant.visitor if grant else None


@pytest.fixture
def tokens(home: Path, clock: Clock) -> Iterator[Tokens]:
    made = Tokens(home, clock)
    yield made
    made.close()


def test_the_admin_token_is_made_once(tokens: Tokens) -> None:
    token = tokens.ensure_admin()
    assert token is not None
    assert len(token) == 43
    assert tokens.ensure_admin() is None
    assert visitor_of(tokens, token) == ADMIN


def test_a_new_admin_token_voids_the_old_one(tokens: Tokens) -> None:
    old = tokens.ensure_admin()
    assert old is not None
    grant = tokens.grant_of(old)
    new = tokens.renew_admin()
    assert new != old
    assert visitor_of(tokens, old) is None
    assert visitor_of(tokens, new) == ADMIN
    assert grant is not None
    assert tokens.holder(grant.id) is None


@pytest.mark.parametrize("wrong", ["", "x", "é" * 43, "\ud800", "\x00"])
def test_what_is_no_token_is_nobodys(tokens: Tokens, wrong: str) -> None:
    tokens.ensure_admin()
    assert visitor_of(tokens, wrong) is None


def test_no_part_of_a_token_is_on_disk(tokens: Tokens, home: Path) -> None:
    secrets = [tokens.ensure_admin(), tokens.invite("anna")]
    for secret in secrets:
        assert secret is not None
        visitor_of(tokens, secret)
    tokens.close()
    kept = b"".join(path.read_bytes() for path in (home / "server").iterdir())
    assert b"anna" in kept
    assert not [secret for secret in secrets if secret and secret[:8].encode() in kept]


def test_the_file_is_private(tokens: Tokens, home: Path) -> None:
    tokens.ensure_admin()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home / "server").glob("access.db*")}
    assert set(modes) == {"access.db", "access.db-wal", "access.db-shm"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((home / "server").stat().st_mode) == 0o700


def test_judges_are_invited_and_revoked(tokens: Tokens, clock: Clock) -> None:
    token = tokens.invite("anna")
    assert tokens.judges() == [JudgeAccess("anna", 1_000_000_000, None)]
    with pytest.raises(InvalidInput, match="'anna' has already been invited"):
        tokens.invite("anna")
    assert visitor_of(tokens, token) == Visitor("judge", "anna")
    clock.now += 30  # a minute's grace, so that not every request writes
    visitor_of(tokens, token)
    assert tokens.judges() == [JudgeAccess("anna", 1_000_000_000, 1_000_000_000)]
    clock.now += 31
    visitor_of(tokens, token)
    assert tokens.judges()[0].last_seen_ms == 1_000_061_000
    tokens.revoke("anna")
    assert tokens.judges() == []
    assert visitor_of(tokens, token) is None
    assert visitor_of(tokens, tokens.invite("anna")) == Visitor("judge", "anna")
    assert visitor_of(tokens, token) is None


def test_who_was_never_invited_can_not_be_revoked(tokens: Tokens) -> None:
    with pytest.raises(NotFound, match="no judge 'bob' is invited"):
        tokens.revoke("bob")


@pytest.mark.parametrize("name", ["person", "", "a b", "ä", "../x", "x" * 41])
def test_names_that_no_judge_may_have(tokens: Tokens, name: str) -> None:
    with pytest.raises(InvalidInput):
        tokens.invite(name)
    assert tokens.judges() == []


def test_the_admins_token_can_not_be_revoked_as_a_judges(tokens: Tokens) -> None:
    token = tokens.ensure_admin()
    with pytest.raises(NotFound):
        tokens.revoke("person")
    assert visitor_of(tokens, token or "") == ADMIN


def test_a_given_token_counts_instead_of_the_stored_one(tokens: Tokens, home: Path, clock: Clock) -> None:
    stored = tokens.ensure_admin()
    assert stored is not None
    grant = tokens.grant_of(stored)
    assert grant is not None
    judge = tokens.invite("anna")
    server = Tokens(home, clock, GIVEN)
    assert server.ensure_admin() is None
    assert visitor_of(server, GIVEN) == ADMIN
    assert visitor_of(server, stored) is None
    assert server.holder(grant.id) is None
    assert visitor_of(server, judge) == Visitor("judge", "anna")
    assert visitor_of(server, "") is None
    with pytest.raises(InvalidInput, match="set by TIPBENCH_ADMIN_TOKEN"):
        server.renew_admin()
    server.close()
    kept = b"".join(path.read_bytes() for path in (home / "server").iterdir())
    assert GIVEN.encode() not in kept
    assert visitor_of(tokens, GIVEN) is None
    assert visitor_of(tokens, stored) == ADMIN


def test_a_given_token_is_known_by_one_id_until_it_changes(home: Path, clock: Clock) -> None:
    ids = []
    for given in (GIVEN, GIVEN, GIVEN + "!"):
        tokens = Tokens(home, clock, given)
        grant = tokens.grant_of(given)
        assert grant is not None
        assert tokens.holder(grant.id) == ADMIN
        ids.append(grant.id)
        tokens.close()
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize("given", ["x" * 19, "with spaces in the token", "ä" * 20])
def test_a_given_token_that_is_weak_or_can_not_travel_is_refused(home: Path, clock: Clock, given: str) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_ADMIN_TOKEN has") as caught:
        Tokens(home, clock, given)
    assert given not in str(caught.value)


def test_what_another_process_changes_is_seen_at_once(tokens: Tokens, home: Path) -> None:
    def elsewhere(action: str) -> str:
        code = f"import time; from pathlib import Path; from tipbench.web.tokens import Tokens; import sys\n{action}"
        start = "t = Tokens(Path(sys.argv[1]), time.time);"
        done = subprocess.run(
            [sys.executable, "-c", code.replace("GO", start), str(home)], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    first = tokens.ensure_admin()
    assert visitor_of(tokens, first or "") == ADMIN
    second = elsewhere("GO print(t.renew_admin())")
    assert visitor_of(tokens, first or "") is None
    assert visitor_of(tokens, second) == ADMIN


def test_two_at_once_make_one_admin_token(home: Path, clock: Clock) -> None:
    def start(_: int) -> str | None:
        tokens = Tokens(home, clock)
        try:
            return tokens.ensure_admin()
        finally:
            tokens.close()

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(start, range(16)))
    assert len([token for token in made if token]) == 1


def test_nobody_is_kept_waiting_for_a_note_of_when_they_came(tokens: Tokens, home: Path) -> None:
    token = tokens.invite("anna")
    with sqlite3.connect(home / "server" / "access.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        assert visitor_of(tokens, token) == Visitor("judge", "anna")
        assert time.monotonic() - start < 5
    other.close()
    assert tokens.judges()[0].last_seen_ms is None
