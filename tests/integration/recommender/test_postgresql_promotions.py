"""The history in a real PostgreSQL: the same for all who are connected."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from tests.recommender.gates import BACK, LINUCB, V2, promoted
from tests.recommender.making import Clock
from tests.recommender.prior.priors import means, prior_content
from tipbench.core.errors import Conflict, NotFound, StateDamaged
from tipbench.recommender.promotion.live import LivePolicy
from tipbench.recommender.store.postgresql import PostgresStore


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


def test_acts_are_seen_by_everybody_and_the_mark_changes_with_each(store: PostgresStore, url: str) -> None:
    with closing(PostgresStore(url)) as other:
        assert other.promotions.history() == ()
        marks = [other.promotions.revision()]
        for known, act in enumerate((V2, LINUCB)):
            store.promotions.append(act, known)
            marks.append(other.promotions.revision())
        assert other.promotions.history() == (V2, LINUCB)
        assert len(set(marks)) == 3


def test_another_machine_follows(store: PostgresStore, url: str) -> None:
    clock = Clock()
    with closing(PostgresStore(url)) as other:
        live = LivePolicy(other.promotions, clock=clock)
        assert live.current() == "egreedy"
        store.promotions.append(V2, 0)
        clock.now += other.promotions.poll_interval_s
        assert live.current() == "egreedy/v2"


def test_whoever_decided_on_an_older_history_is_told(store: PostgresStore) -> None:
    store.promotions.append(V2, 0)
    with pytest.raises(Conflict, match="somebody else changed it first: egreedy/v2 is live now"):
        store.promotions.append(promoted("egreedy", "linucb"), 0)
    assert store.promotions.history() == (V2,)


def test_one_of_many_at_once_wins_and_all_others_are_told(store: PostgresStore) -> None:
    for known in range(0, 20, 2):
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(_wins, [store] * 8, [known] * 8)) == 1
        store.promotions.append(BACK, known + 1)
    assert len(store.promotions.history()) == 20


def _wins(store: PostgresStore, known: int) -> bool:
    try:
        store.promotions.append(V2, known)
    except Conflict:
        return False
    return True


def test_an_act_that_nobody_of_ours_wrote_is_told(store: PostgresStore, url: str) -> None:
    store.promotions.append(V2, 0)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute('INSERT INTO tipbench_promotions VALUES (2, \'{"to": "linucb"}\')')
    with pytest.raises(StateDamaged, match=r"entry 2 in tipbench_promotions of postgresql://.*backup"):
        store.promotions.history()


@pytest.mark.parametrize("missing", ["tipbench_promotions, tipbench_priors", "tipbench_priors"])
def test_a_database_that_was_made_before_there_were_promotions_or_priors_gets_its_tables(
    store: PostgresStore, url: str, missing: str
) -> None:
    store.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {missing}")
    with closing(PostgresStore(url)) as again:
        assert again.promotions.history() == ()
        assert again.priors.digests() == []


def test_priors_are_the_same_for_everybody(store: PostgresStore, url: str) -> None:
    content = prior_content(mean=means(bias=1 / 3), tips={"t1": -0.1})
    digest = store.priors.put(content)
    assert store.priors.put(content) == digest
    with closing(PostgresStore(url)) as other:
        assert other.priors.digests() == [digest]
        assert other.priors.read(digest).content == content
        with pytest.raises(NotFound, match="there is no prior 0000000000000000 in tipbench_priors of"):
            other.priors.read("0" * 16)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE tipbench_priors SET content = '{}'")
    with pytest.raises(StateDamaged, match="was changed after it was written"):
        store.priors.read(digest)
