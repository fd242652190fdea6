"""The file of one user and policy, as bytes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.recommender.records import Source
from tipbench.recommender.store.document import MOST_SETTLED, MOST_WAITING, Document
from tipbench.recommender.store.interface import Event, Key, UserState

KEY = Key("u1", "egreedy/v2")
PATH = Path("u1_egreedy_v2.json")
KEPT = UserState("v2", {"n": 1, "xx": [0.1, 1e-300]}, duplicates=2, late=3, updated_ms=4)
SOURCE = Source(run_id="0" * 32, cell="a" * 64)
EVENT = Event("e1", 5, "d", "t1", 0.1, 0.25, 0.3, 0, (1.0, 1 / 3), SOURCE, category="inbox")


def stored(document: Document) -> Document:
    return Document.read(document.as_bytes(), PATH, KEY)


def test_what_was_put_is_there_again() -> None:
    document = Document.new(KEY)
    assert not document.changed
    document.put(EVENT)
    document.put(replace(EVENT, id="e2", source=None, reward=-0.5, features=None))
    document.put_state(KEPT)
    again = stored(document)
    assert (again.key, again.user_state, again.changed) == (KEY, KEPT, False)
    assert (
        again.events() == document.events() == [EVENT, replace(EVENT, id="e2", source=None, reward=-0.5, features=None)]
    )
    assert again.event("e1") == EVENT
    assert again.event("e3") is None
    assert again.as_bytes() == document.as_bytes()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12))
def test_numbers_come_back_exactly(values: list[float]) -> None:
    document = Document.new(KEY)
    document.put(replace(EVENT, features=tuple(values), score=values[0]))
    document.put_state(replace(KEPT, state={"xx": values}))
    again = stored(document)
    assert again.event("e1") == document.event("e1")
    assert again.user_state == document.user_state


def test_the_oldest_of_too_many_that_wait_are_late_from_now_on() -> None:
    document = Document.new(KEY)
    for number in range(MOST_WAITING + 3):
        document.put(replace(EVENT, id=f"e{number}"))
    late = [event.id for event in document.events() if event.late]
    assert late == ["e0", "e1", "e2"]
    assert document.event("e2") == replace(EVENT, id="e2", late=True, features=None, category=None)
    assert sum(event.waits for event in document.events()) == MOST_WAITING


def test_the_oldest_of_too_many_that_got_theirs_are_forgotten() -> None:
    document = Document.new(KEY)
    document.put(replace(EVENT, id="waits"))
    for number in range(MOST_SETTLED + 2):
        document.put(replace(EVENT, id=f"e{number}", reward=0.0, features=None))
    assert document.event("waits")
    assert document.event("e1") is None
    assert document.event("e2")
    assert len(document.events()) == MOST_SETTLED + 1


def test_a_reward_that_came_last_is_forgotten_last() -> None:
    """However long ago its event was scored: whoever got no answer sends it again."""
    document = Document.new(KEY)
    document.put(replace(EVENT, id="old"))
    for number in range(MOST_SETTLED):
        document.put(replace(EVENT, id=f"e{number}", reward=0.0, features=None))
    document.put(replace(EVENT, id="old", reward=1.0, features=None))
    assert document.event("old")
    document.put(replace(EVENT, id="next", reward=0.0, features=None))
    assert document.event("old")
    assert document.event("e1") is None
    assert document.event("e2")


def test_a_file_stays_small() -> None:
    """Whatever happens: two hundred that wait with twelve dimensions, and as many that are remembered."""
    document = Document.new(KEY)
    document.put_state(replace(KEPT, state={"xx": [1 / 3] * 78, "xr": [1 / 3] * 12}))
    for number in range(3000):
        reward = None if number % 2 else 0.123456789
        document.put(replace(EVENT, id=f"{number:064}", features=(1 / 3,) * 12, reward=reward))
    assert len(document.as_bytes()) < 250_000


def test_a_file_and_a_change_from_before_categories_are_read() -> None:
    data = from_json(changed())
    del data["crc"]
    data["event_columns"].remove("category")
    data["events"] = [row[:-1] for row in data["events"]]
    document = Document.read(to_json(data), PATH, KEY)
    assert stored(document).events() == [replace(EVENT, category=None)]
    document.apply({"kept": None, "revision": 7, "events": [["e2", *data["events"][0][1:]]]})
    assert stored(document).event("e2") == replace(EVENT, id="e2", category=None)


def changed(**changes: Any) -> bytes:
    document = Document.new(KEY)
    document.put(EVENT)
    document.put_state(KEPT)
    return to_json(from_json(document.as_bytes()) | changes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "EOF"),
        (b"{", "EOF"),
        (b"[]", "can't be used"),
        (b"null", "can't be used"),
        (b'{"schema": 1}', "user_id"),
        (changed()[:-20], "EOF"),
        (changed(schema=2), "its schema is 2"),
        (changed(user_id="u2"), "it is about 'u2'"),
        (changed(policy="linucb"), "with 'linucb'"),
        (changed(event_columns=["id"]), "other columns"),
        (changed(kept={"version": 1}), "can't be used"),
        (changed(kept=vars(KEPT) | {"state": [1]}), "of another kind"),
        (changed(kept=vars(KEPT) | {"late": None}), "of another kind"),
        (changed(kept=vars(KEPT) | {"duplicates": "1"}), "of another kind"),
        (changed(kept=vars(KEPT) | {"updated_ms": 0.5}), "of another kind"),
        (changed(events=[[]]), "can't be used"),
        (changed(events=["an event of a dozen letters"[:12]]), "can't be used"),
        (changed(events=7), "can't be used"),
        (changed().replace(b"0.25", b"NaN"), "can't be used"),
    ],
)
def test_what_nobody_of_ours_wrote_is_refused_with_its_file(content: bytes, reason: str) -> None:
    with pytest.raises(StateDamaged, match=reason) as caught:
        Document.read(content, PATH, KEY)
    assert "u1_egreedy_v2.json" in str(caught.value)


def test_one_digit_that_is_not_as_it_was_written_is_noticed() -> None:
    document = Document.new(KEY)
    document.put_state(KEPT)
    content = document.as_bytes()
    with pytest.raises(StateDamaged, match="its checksum does not match"):
        Document.read(content.replace(b'"duplicates":2', b'"duplicates":3'), PATH, KEY)
    assert Document.read(content, PATH, KEY).user_state == KEPT


@pytest.mark.parametrize(
    ("column", "value"),
    [("features", "abc"), ("features", [[1.0]]), ("source", {"run_id": "x"}), ("scored_ms", None), ("reward", "x")],
)
def test_an_event_that_nobody_of_ours_wrote_is_refused_when_it_is_asked_for(column: str, value: Any) -> None:
    data = from_json(changed())
    data["events"][0][data["event_columns"].index(column)] = value
    document = Document.from_data(data, PATH, KEY)
    with pytest.raises(StateDamaged, match="the event 'e1' was not written by tipbench"):
        document.event("e1")


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(content: bytes) -> None:
    with pytest.raises(StateDamaged):
        Document.read(content, PATH, KEY)
