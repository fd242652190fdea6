"""`tipbench recommend rollback`, as a user types it."""

import io

import pytest

from tests.integration.command import tipbench
from tests.recommender.gates import LINUCB, V2
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.live import live_now
from tipbench.recommender.store.moving import open_store


@pytest.fixture
def two_promotions() -> None:
    promotions = open_store(Settings()).promotions
    promotions.append(V2, 0)
    promotions.append(LINUCB, 1)


@pytest.mark.usefixtures("two_promotions")
def test_each_goes_back_one_promotion_until_there_is_none() -> None:
    first = tipbench("recommend", "rollback", "--yes")
    assert first.status == 0
    assert "egreedy/v2 is live again instead of linucb. Promotions that can still be rolled back: 1." in first.out
    second = tipbench("recommend", "rollback", "--yes")
    assert second.out.strip() == "egreedy is live again instead of egreedy/v2."
    third = tipbench("recommend", "rollback", "--yes")
    assert third.status == 2
    assert "there is nothing to roll back to" in third.err
    assert live_now(Settings()) == "egreedy"


@pytest.mark.usefixtures("two_promotions")
@pytest.mark.parametrize(("answer", "live"), [("y", "egreedy/v2"), ("", "linucb")])
def test_it_asks_first(monkeypatch: pytest.MonkeyPatch, answer: str, live: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    done = tipbench("recommend", "rollback")
    assert done.status == 0
    assert "Make egreedy/v2 live again instead of linucb?" in done.out
    assert ("Nothing was changed: linucb is live." in done.out) == (live == "linucb")
    assert live_now(Settings()) == live


def test_help_says_that_twice_goes_further() -> None:
    assert "Rolling back twice goes back two promotions" in tipbench("recommend", "rollback", "--help").out
