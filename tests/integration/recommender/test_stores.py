"""What every store promises, on files and on a real PostgreSQL."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.postgres_server import PostgresServer
from tests.integration.recommender.databases import Where, content, new_schema
from tests.integration.recommender.writing import POLICY, USER, acknowledged, assert_learned_once, learn, start_writer
from tests.recommender.making import a_recommender
from tipbench.core.errors import InvalidInput, LockTaken, StateRefused, TipbenchError
from tipbench.recommender.records import Source
from tipbench.recommender.store.interface import Event, Key, Marker, Store, UserState
from tipbench.recommender.store.moving import move

KEY = Key("u1", "egreedy/v2")
KEPT = UserState("v2", {"n": 3, "reward_sum": 1.5, "xx": [0.1, -0.0, 1e300, 5e-324], "xr": []}, duplicates=1, late=2)
EVENT = Event(
    id="e1",
    scored_ms=1_800_000_000_123,
    request="ab" * 16,
    chosen="a tip's id: 'quoted' \\ %s ü 🎯",
    score=0.1 + 0.2,
    propensity=1 / 3,
    epsilon=0.05,
    n=3,
    features=(1.0, -0.0, 0.1 + 0.2, 5e-324),
    source=Source(run_id="0" * 32, cell="f" * 12),
)
PROCESSES = 8
REWARDS = 1200
KILLS = 10
finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(params=["files", "postgresql"])
def where(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path) -> Where:
    return Where(request.param, str(tmp_path / "state") if request.param == "files" else new_schema(postgres))


@pytest.fixture
def store(where: Where) -> Iterator[Store]:
    store = where.open()
    yield store
    store.close()


def _stored(store: Store, event: Event, user_state: UserState = KEPT) -> None:
    with store.transaction(KEY, event.id) as transaction:
        transaction.put(event)
        transaction.put_state(user_state)


def test_what_was_put_and_kept_is_there_for_the_next_one(store: Store) -> None:
    _stored(store, EVENT)
    with store.transaction(KEY) as transaction:
        assert transaction.user_state == KEPT
        assert transaction.event("e1") == EVENT
        assert transaction.event("e2") is None
    assert store.read_state(KEY) == KEPT
    assert store.events(KEY) == [EVENT]
    assert store.waiting(KEY) == 1
    assert list(store.keys()) == [KEY]


def test_nobody_yet(store: Store) -> None:
    with store.transaction(KEY, "e1") as transaction:
        assert transaction.user_state is None
        assert transaction.event("e1") is None
    assert store.read_state(KEY) is None
    assert store.events(KEY) == []
    assert store.waiting(KEY) == 0
    assert list(store.keys()) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(numbers=st.lists(finite, min_size=5, max_size=20))
def test_every_number_comes_back_as_it_was(store: Store, numbers: list[float]) -> None:
    event = replace(
        EVENT,
        score=numbers[0],
        propensity=numbers[1],
        epsilon=numbers[2],
        reward=numbers[3],
        features=tuple(numbers),
    )
    user_state = replace(KEPT, state={"n": 3, "reward_sum": numbers[4], "xx": numbers, "sums": [[1.0, numbers[0], 2]]})
    _stored(store, event, user_state)
    assert repr(store.events(KEY)) == repr([event])  # which tells zeros and integers apart
    found = store.read_state(KEY)
    assert found is not None
    assert repr({**found.state}) == repr(user_state.state)


def test_an_event_that_changes_is_still_one_event(store: Store) -> None:
    events = [replace(EVENT, id=f"e{number}") for number in range(4)]
    for event in events:
        _stored(store, event)
    rewarded = replace(events[1], reward=-0.5, features=None, source=None)
    late = replace(events[2], late=True)
    _stored(store, rewarded)
    with store.transaction(KEY) as transaction:  # without having asked for it
        transaction.put(late)
        assert transaction.event("e2") == late
    found = sorted(store.events(KEY), key=lambda event: event.id)
    assert found == [events[0], rewarded, late, events[3]]
    assert store.waiting(KEY) == 2


def test_several_at_once(store: Store) -> None:
    with store.transaction(KEY) as transaction:
        for number in range(3):
            transaction.put(replace(EVENT, id=f"e{number}"))
    assert [event.id for event in store.events(KEY)] == ["e0", "e1", "e2"]
    assert store.read_state(KEY) is None


def test_policies_and_users_are_apart(store: Store) -> None:
    _stored(store, EVENT)
    for key in (Key("u1", "egreedy"), Key("u2", "egreedy/v2")):
        with store.transaction(key, "e1") as transaction:
            assert transaction.user_state is None
            assert transaction.event("e1") is None


@pytest.mark.parametrize("known", [False, True])
def test_a_block_that_raises_leaves_no_trace(store: Store, known: bool) -> None:
    if known:
        _stored(store, EVENT)

    def fault() -> None:
        with store.transaction(KEY, "e1") as transaction:
            transaction.put(replace(EVENT, id="e2"))
            transaction.put(replace(EVENT, reward=1.0))
            transaction.put_state(replace(KEPT, late=9))
            raise RuntimeError("fault")

    with pytest.raises(RuntimeError, match="fault"):
        fault()
    assert list(store.keys()) == ([KEY] if known else [])
    assert store.events(KEY) == ([EVENT] if known else [])
    assert store.read_state(KEY) == (KEPT if known else None)


def test_one_at_a_time_and_who_only_looks_does_not_wait(store: Store) -> None:
    said: list[str] = []
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with store.transaction(KEY) as transaction:
            inside.set()
            leave.wait(10)
            transaction.put_state(KEPT)
            said.append("first")

    def second() -> None:
        with store.transaction(KEY) as transaction:
            assert transaction.user_state == KEPT
            said.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    with store.transaction(Key("another", "egreedy")):  # is not kept waiting
        assert store.read_state(KEY) is None
        assert store.waiting(KEY) == 0
    time.sleep(0.1)
    assert said == []
    leave.set()
    for thread in threads:
        thread.join(10)
    assert said == ["first", "second"]


def test_forgetting_a_user(store: Store) -> None:
    others = [Key("u1", "linucb"), Key("u1", "shadow"), Key("u2", "egreedy/v2")]
    for key in (KEY, *others):
        with store.transaction(key) as transaction:
            transaction.put(EVENT)
            transaction.put_state(KEPT)
    assert store.clear("u1", ["linucb", "egreedy", "egreedy/v2"]) == ["linucb", "egreedy/v2"]
    assert sorted(store.keys()) == sorted(others[1:])
    assert store.events(KEY) == []
    assert store.clear("u1", ["linucb", "egreedy", "egreedy/v2"]) == []
    _stored(store, EVENT)
    assert store.events(KEY) == [EVENT]


def test_who_waits_for_a_user_that_is_forgotten_meanwhile_begins_anew(store: Store) -> None:
    _stored(store, EVENT)
    seen: list[UserState | None] = []

    def wait() -> None:
        with store.transaction(KEY, "e1") as transaction:
            seen.append(transaction.user_state)
            assert transaction.event("e1") is None
            transaction.put_state(replace(KEPT, late=7))

    cleared = threading.Thread(target=store.clear, args=("u1", [KEY.policy]))
    waiting = threading.Thread(target=wait)
    with store.transaction(KEY):
        cleared.start()
        time.sleep(0.1)
        waiting.start()
        time.sleep(0.1)
    cleared.join(10)
    waiting.join(10)
    assert seen in ([None], [KEPT])  # whichever of the two came first
    assert store.read_state(KEY) == (replace(KEPT, late=7) if seen == [None] else None)


def test_users_who_are_forgotten_while_they_come(store: Store) -> None:
    """Nobody waits for somebody who waits for them, and no event is left without its state."""
    over = time.monotonic() + 1
    failed: list[Exception] = []

    def come(number: int) -> None:
        with_id = 0
        while time.monotonic() < over:
            with_id += 1
            event = replace(EVENT, id=f"{number}-{with_id}")
            with store.transaction(KEY, event.id) as transaction:
                transaction.put(event)
                transaction.put_state(KEPT)

    def forget(_: int) -> None:
        while time.monotonic() < over:
            store.clear("u1", ["egreedy", KEY.policy])

    def run(act: Callable[[int], None], number: int) -> None:
        try:
            act(number)
        except TipbenchError as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(act, number)) for act in (come, forget) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failed
    store.clear("u1", [KEY.policy])
    assert store.read_state(KEY) is None
    assert store.events(KEY) == []


@pytest.mark.parametrize("user_id", ["", "../u", "a b", "ü", "\x00", "\ud800", "u" * 65])
def test_no_store_takes_a_user_that_another_could_not_hold(store: Store, user_id: str) -> None:
    key = Key(user_id, "egreedy")
    with pytest.raises(InvalidInput), store.transaction(key):
        pass
    for ask in (store.read_state, store.waiting, store.events):
        with pytest.raises(InvalidInput):
            ask(key)
    with pytest.raises(InvalidInput):
        store.clear(user_id, ["egreedy"])


def test_written_as_a_whole(where: Where) -> None:
    store = where.open(exclusive=True)
    events = [replace(EVENT, id=f"e{number}", reward=None if number % 3 else 0.25) for number in range(450)]
    store.write(KEY, KEPT, events[:7])
    store.write(KEY, replace(KEPT, late=5), events)
    assert (store.read_state(KEY), store.events(KEY)) == (replace(KEPT, late=5), events)
    store.write(KEY, None, [])
    assert (store.read_state(KEY), store.events(KEY)) == (None, [])
    store.close()


def test_a_store_in_use_is_not_moved_and_one_that_is_moved_is_not_used(where: Where) -> None:
    store, other = where.open(), where.open()
    other.close()
    with pytest.raises(LockTaken, match="in use"):
        where.open(exclusive=True)
    store.close()
    exclusive = where.open(exclusive=True)
    for again in (False, True):
        with pytest.raises(LockTaken, match="in use" if again else "being moved"):
            where.open(again)
    exclusive.close()
    where.open().close()


def test_a_marked_store_says_where_its_states_are(where: Where) -> None:
    exclusive = where.open(exclusive=True)
    marks = (
        Marker("INCOMPLETE", "files", "/srv/state", 1_800_000_000_000),
        Marker("MOVED", "postgresql", "postgresql://db/name", 1_800_000_000_000),
    )
    for mark in (*marks, marks[0], None):
        exclusive.set_marker(mark)
        assert exclusive.marker == mark
    exclusive.set_marker(marks[1])
    exclusive.close()
    with pytest.raises(StateRefused, match="2027-01-15 08:00 UTC; set TIPBENCH_STATE=postgresql, or"):
        where.open()
    exclusive = where.open(exclusive=True)
    exclusive.set_marker(marks[0])
    exclusive.close()
    with pytest.raises(StateRefused, match=f"continue with: tipbench recommend move files {where.kind}"):
        where.open()


def test_there_and_back(postgres: PostgresServer, tmp_path: Path) -> None:
    places = (Where("files", str(tmp_path / "state")), Where("postgresql", new_schema(postgres)))
    keys = [Key(f"u{number}", policy) for number in range(20) for policy in ("egreedy", "linucb")]
    files, database = (where.open(exclusive=True) for where in places)
    for number, key in enumerate(keys):
        files.write(key, replace(KEPT, late=number), [replace(EVENT, id=f"e{count}") for count in range(number)])
    before = content(files)
    assert move(files, database, 1, lambda *_: None) == (40, 20)
    assert content(database) == before
    with database.transaction(keys[3]) as transaction:
        transaction.put_state(replace(KEPT, duplicates=77))
    database.clear("u7", ["egreedy"])
    changed = content(database)
    assert move(database, files, 2, lambda *_: None) == (39, 20)
    assert content(files) == changed
    assert (files.marker, database.marker and database.marker.kind) == (None, "MOVED")
    for store in (files, database):
        store.close()


def test_eight_processes_lose_and_double_nothing(where: Where, tmp_path: Path) -> None:
    each = REWARDS // PROCESSES
    parts = [range(number * each, (number + 1) * each) for number in range(PROCESSES)]
    processes = [start_writer(where, tmp_path, part, durable=False) for part in parts]
    for process in processes:
        process.join(200)
        assert process.exitcode == 0
    store = where.open()
    user_state = store.read_state(Key(USER, POLICY))
    assert user_state is not None
    assert user_state.duplicates == 0
    assert_learned_once(user_state.state, range(REWARDS))
    store.close()


def test_what_was_acknowledged_survives_a_kill(where: Where, tmp_path: Path) -> None:
    """Killed at random moments. Whatever was not acknowledged is sent again, and counts once, whether it was stored or
    not."""
    chance, done = random.Random(8), 0
    (tmp_path / "acknowledged").touch()
    for _ in range(KILLS):
        process = start_writer(where, tmp_path, range(done, done + 10_000))
        before = time.monotonic()
        while len(acknowledged(tmp_path)) <= done and time.monotonic() < before + 60:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.08))
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
        process.join(10)
        told = acknowledged(tmp_path)
        assert told == [*range(len(told))]
        store = where.open()
        user_state = store.read_state(Key(USER, POLICY))
        assert user_state is not None
        assert user_state.state["n"] - len(told) in (0, 1)
        recommender = a_recommender(tmp_path, store=store)
        learn(recommender, len(told))  # which was on its way
        with (tmp_path / "acknowledged").open("a") as file:
            file.write(f"{len(told)}\n")
        done = len(told) + 1
        user_state = store.read_state(Key(USER, POLICY))
        assert user_state is not None
        assert_learned_once(user_state.state, range(done))
        recommender.close()
    assert done > KILLS
