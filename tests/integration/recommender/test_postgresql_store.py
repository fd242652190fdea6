"""States in PostgreSQL when the server is away, refuses us or is frozen; and what is particular to its tables."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.integration.postgres_server import PostgresServer
from tests.integration.recommender.databases import connection_url
from tests.recommender.making import a_recommender, a_request, a_reward
from tests.recommender.store.test_document import EVENT, KEPT
from tipbench.core.errors import InvalidInput, StateDamaged, StateRefused, StoreUnreachable
from tipbench.recommender.store import postgresql_connections, postgresql_tables
from tipbench.recommender.store.interface import Event, Key
from tipbench.recommender.store.postgresql import PostgresStore
from tipbench.recommender.store.postgresql_connections import MAX_CONNECTIONS, TIMEOUT_S, DatabaseUrl
from tipbench.recommender.store.postgresql_tables import REMEMBERED

KEY = Key("u1", "egreedy/v2")
PASSWORD = "my-own-secret"


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


def _sql(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """Of this module's own: it is frozen here, and ended."""
    with PostgresServer.start() as server:
        yield server


def _keep(store: PostgresStore, late: int) -> None:
    with store.transaction(KEY) as transaction:
        transaction.put_state(replace(KEPT, late=late))


def _late(store: PostgresStore) -> int:
    user_state = store.read_state(KEY)
    assert user_state is not None
    return user_state.late


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            return _sql(url, "SELECT 1")
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_restart_of_the_server_is_not_noticed(postgres: PostgresServer, url: str, store: PostgresStore) -> None:
    with store.transaction(KEY), store.transaction(Key("u2", "egreedy")), store.transaction(Key("u3", "egreedy")):
        pass  # so that several connections are there
    postgres.end()
    postgres.start_again()
    _wait_for(url)
    for late in range(4):
        _keep(store, late)
        assert _late(store) == late


def test_while_the_server_is_away_it_is_said_at_once(postgres: PostgresServer, url: str, store: PostgresStore) -> None:
    _keep(store, 1)
    postgres.end()
    before = time.monotonic()
    for _ in range(3):
        with pytest.raises(StoreUnreachable, match=f"{store.address} can't be used: .*TIPBENCH_POSTGRESQL_URL"):
            _keep(store, 2)
        with pytest.raises(StoreUnreachable):
            store.read_state(KEY)
    assert time.monotonic() - before < TIMEOUT_S
    postgres.start_again()
    _wait_for(url)
    assert _late(store) == 1
    _keep(store, 2)
    assert _late(store) == 2


def test_a_connection_lost_inside_a_block_stores_nothing(url: str, store: PostgresStore) -> None:
    _keep(store, 1)

    def lose() -> None:
        with store.transaction(KEY) as transaction:
            transaction.put_state(replace(KEPT, late=2))
            _sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'")

    with pytest.raises(StoreUnreachable, match="terminating connection"):
        lose()
    assert _late(store) == 1
    _keep(store, 3)
    assert _late(store) == 3


def test_a_frozen_server_holds_nobody_for_long(
    postgres: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _keep(store, 1)
    monkeypatch.setattr(postgresql_connections, "TIMEOUT_S", 1.0)
    frozen = [postgres.process.pid, *(child.pid for child in psutil.Process(postgres.process.pid).children())]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        before = time.monotonic()
        with pytest.raises(StoreUnreachable, match="no answer within 1 s"):
            store.read_state(KEY)
        assert 0.9 < time.monotonic() - before < TIMEOUT_S
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    assert _late(store) == 1


def test_who_holds_a_user_too_long_keeps_the_others_waiting_for_seconds_only(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "'4s'" in postgresql_tables.SET_UP
    monkeypatch.setattr(postgresql_tables, "SET_UP", postgresql_tables.SET_UP.replace("'4s'", "'300ms'"))
    store = PostgresStore(url)
    with (
        store.transaction(KEY),
        pytest.raises(StoreUnreachable, match=r"held the lock of this user .* try again"),
        store.transaction(KEY),
    ):
        pass
    _keep(store, 4)
    assert _late(store) == 4
    store.close()


def test_who_is_frozen_while_holding_a_user_loses_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "'10s'" in postgresql_tables.SET_UP
    monkeypatch.setattr(postgresql_tables, "SET_UP", postgresql_tables.SET_UP.replace("'10s'", "'100ms'"))
    with closing(PostgresStore(url)) as store:

        def freeze() -> None:
            with store.transaction(KEY) as transaction:
                transaction.put_state(KEPT)
                time.sleep(1)

        with pytest.raises(StoreUnreachable, match="idle-in-transaction timeout"):
            freeze()
        assert store.read_state(KEY) is None
        _keep(store, 4)
        assert _late(store) == 4


def test_when_all_connections_are_lent_one_waits_for_the_next(store: PostgresStore) -> None:
    inside, leave = threading.Barrier(MAX_CONNECTIONS + 1), threading.Event()

    def hold(number: int) -> None:
        with store.transaction(Key(f"u{number}", "egreedy")) as transaction:
            inside.wait(10)
            leave.wait(10)
            transaction.put_state(KEPT)

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(MAX_CONNECTIONS)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    threading.Timer(0.2, leave.set).start()
    assert store.read_state(KEY) is None  # after somebody has given one back
    assert leave.is_set()
    for thread in threads:
        thread.join(10)
    assert len(list(store.keys())) == MAX_CONNECTIONS


def test_a_password_that_is_refused_is_not_shown(postgres: PostgresServer, url: str) -> None:
    _sql(url, "DROP ROLE IF EXISTS locked", "CREATE ROLE locked LOGIN PASSWORD 'another'")
    rules = postgres.folder / "data" / "pg_hba.conf"
    trusting = rules.read_text(encoding="utf-8")
    rules.write_text("local all locked scram-sha-256\n" + trusting, encoding="utf-8")
    _sql(url, "SELECT pg_reload_conf()")
    told = ""
    deadline = time.monotonic() + 10
    while "password authentication failed" not in told and time.monotonic() < deadline:
        try:
            PostgresStore(url.replace("bench@", f"locked:{PASSWORD}@")).close()
        except StoreUnreachable as error:  # before the rules are read anew: it may make no tables
            told = repr(error) + repr(error.__cause__)
    assert 'password authentication failed for user "locked"' in told
    assert PASSWORD not in told
    rules.write_text(trusting, encoding="utf-8")
    _sql(url, "SELECT pg_reload_conf()", "DROP ROLE locked")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{PASSWORD}@{PASSWORD}@host/name",
        f"postgresql+psycopg2://u:{PASSWORD}@host/name",
        f"postgresql://u:{PASSWORD}@host/name?unknown={PASSWORD}",
        f"host=here password={PASSWORD}",
        f"postgresql://u:{PASSWORD}@[::1/name",
    ],
)
def test_what_is_no_address_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(InvalidInput, match="write postgresql://user:password@host/name") as refused:
        PostgresStore(url)
    assert PASSWORD not in str(refused.value)


def test_what_is_shown_of_an_address() -> None:
    assert (
        DatabaseUrl.parse(f"postgresql://u:{PASSWORD}@db:5433/states?sslmode=require").address
        == "postgresql://db:5433/states"
    )
    assert DatabaseUrl.parse(f"postgres://u:{PASSWORD}@db").address == "postgresql://db/u"


def test_a_database_that_is_not_there(postgres: PostgresServer) -> None:
    with pytest.raises(StoreUnreachable, match='database "nowhere" does not exist'):
        PostgresStore(connection_url(postgres).replace("/mlflow", "/nowhere"))


def test_a_database_in_another_encoding(postgres: PostgresServer) -> None:
    _sql(connection_url(postgres), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(InvalidInput, match="is LATIN1; create one with ENCODING 'UTF8'"):
        PostgresStore(connection_url(postgres).replace("/mlflow", "/latin"))


def test_a_read_only_server(url: str) -> None:
    PostgresStore(url).close()
    with closing(PostgresStore(url.replace("-c%20", "-c%20default_transaction_read_only%3Don%20-c%20"))) as store:
        assert store.read_state(KEY) is None
        with pytest.raises(StoreUnreachable, match=r"is read-only: .*name a writable server"):
            _keep(store, 1)


def test_who_may_not_make_tables_may_use_those_that_are_there(url: str) -> None:
    schema = url.rpartition("%3D")[2]
    _sql(url, "DROP ROLE IF EXISTS lesser", "CREATE ROLE lesser LOGIN", f"GRANT USAGE ON SCHEMA {schema} TO lesser")
    lesser = url.replace("bench@", "lesser@")
    with pytest.raises(StoreUnreachable, match=r"permission denied .* grant it to the user"):
        PostgresStore(lesser)
    PostgresStore(url).close()
    _sql(url, f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO lesser")
    with closing(PostgresStore(lesser)) as store:
        _keep(store, 1)
        assert _late(store) == 1
    _sql(url, "DROP OWNED BY lesser", "DROP ROLE lesser")


def test_many_may_open_it_first(url: str) -> None:
    stores: list[PostgresStore] = []
    threads = [threading.Thread(target=lambda: stores.append(PostgresStore(url))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(stores) == 6
    for store in stores:
        store.close()


def test_tables_of_another_version_are_refused(url: str) -> None:
    PostgresStore(url).close()
    _sql(url, "UPDATE tipbench_store SET schema_version = 2")
    with pytest.raises(StateRefused, match="have the schema 2, but this version of tipbench knows 1"):
        PostgresStore(url)


def test_tables_that_somebody_changed(url: str, store: PostgresStore) -> None:
    _keep(store, 1)
    _sql(url, "UPDATE tipbench_states SET state = '[]'")
    with pytest.raises(StateDamaged, match="reset the user"):
        store.read_state(KEY)
    assert store.clear("u1", [KEY.policy]) == [KEY.policy]
    _keep(store, 1)
    _sql(url, "DROP TABLE tipbench_events")
    with pytest.raises(StateDamaged, match='"tipbench_events" does not exist'):
        _keep(store, 2)


def test_moved_while_nobody_was_connected_is_found_by_the_next_connection(
    postgres: PostgresServer, url: str, store: PostgresStore
) -> None:
    _keep(store, 1)
    _sql(
        url,
        """UPDATE tipbench_store SET mark = '{"kind": "MOVED", "store": "files", "address": "/srv", "at_ms": 0}'""",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tipbench'",
    )
    with pytest.raises(StateRefused, match="were moved to /srv on 1970"):
        _keep(store, 2)


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800"])
def test_text_that_postgresql_can_not_hold_changes_nothing(store: PostgresStore, text: str) -> None:
    def put(event: Event) -> None:
        with store.transaction(KEY) as transaction:
            transaction.put_state(KEPT)
            transaction.put(event)

    for event in (replace(EVENT, chosen=text), replace(EVENT, id=text)):
        with pytest.raises(InvalidInput):
            put(event)
    with pytest.raises(InvalidInput), store.transaction(KEY, text):
        pass
    with pytest.raises(ValueError, match="1 validation error"):
        a_request(event_id=text)
    assert list(store.keys()) == []


def test_the_oldest_events_are_forgotten_and_the_cost_stays(url: str) -> None:
    """The time of a hundred with a thousand before them, against a hundred with a thousand more that are gone."""

    def put(store: PostgresStore, first: int, count: int) -> float:
        before = time.perf_counter()
        for number in range(first, first + count):
            with store.transaction(KEY, f"e{number}") as transaction:
                transaction.put(replace(EVENT, id=f"e{number}"))
        return time.perf_counter() - before

    with closing(PostgresStore(url, exclusive=True)) as exclusive:
        exclusive.write(KEY, KEPT, [replace(EVENT, id=f"e{number}") for number in range(REMEMBERED)])
    with closing(PostgresStore(url)) as store:
        early = put(store, REMEMBERED, 100)
        assert [event.id for event in store.events(KEY)] == [f"e{number}" for number in range(100, REMEMBERED + 100)]
        put(store, REMEMBERED + 100, 1000)
        late = put(store, REMEMBERED + 1100, 100)
        assert len(store.events(KEY)) == REMEMBERED
    assert late < 4 * early


def test_durable_even_where_the_server_is_told_otherwise(url: str) -> None:
    """Tests run with synchronous_commit=off on the server; our connections turn it on."""
    with closing(PostgresStore(url)) as store, store._connections.execute("SHOW synchronous_commit") as cursor:
        assert cursor.fetchone() == ("on",)


def test_numbers_for_people_who_look_into_the_tables(url: str, store: PostgresStore, tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path, store=store)
    for number in range(3):
        recommender.score("egreedy", a_request(f"e{number}"))
        recommender.reward("egreedy", a_reward(f"e{number}", 0.25))
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT user_id, policy, n, reward_sum FROM tipbench_states").fetchone()
    assert row == ("u1", "egreedy", 3, 0.75)
