"""The journal of a store of files: many changes share a sync, and a power cut takes nothing that was acknowledged."""

import os
import random
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.recommender.store.test_document import EVENT, KEPT
from tests.recommender.waiting import wait_until
from tipbench.core.errors import StateDamaged
from tipbench.recommender.store import journal
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Event, Key, UserState

KEY = Key("u1", "egreedy/v2")


def change(store: FileStore, number: int, key: Key = KEY) -> None:
    with store.transaction(key) as transaction:
        transaction.put(replace(EVENT, id=f"e{number}"))
        transaction.put_state(replace(KEPT, late=number))


def content(store: FileStore, key: Key = KEY) -> tuple[UserState | None, list[Event]]:
    return store.read_state(key), store.events(key)


def lose(path: Path, _: bytes) -> None:
    path.unlink()


def empty(path: Path, _: bytes) -> None:
    path.write_bytes(b"")


def zero(path: Path, _: bytes) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def cut(path: Path, _: bytes) -> None:
    path.write_bytes(path.read_bytes()[:4096])


def bring_back(path: Path, before: bytes) -> None:
    path.write_bytes(before)


DAMAGES = [lose, empty, zero, cut, bring_back]


def after_power_cut(folder: Path, damage: Callable[[Path, bytes], None], before: dict[str, bytes]) -> Path:
    """Return a copy of the store as a disk may have it: what was synced, and any version of what was not."""
    copy = folder.with_name(f"{folder.name}-after")
    shutil.copytree(folder, copy)
    for path in copy.glob("*.json"):
        damage(path, before.get(path.name, b""))
    return copy


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_power_cut_takes_nothing_that_was_acknowledged(tmp_path: Path, damage: Callable[[Path, bytes], None]) -> None:
    first = FileStore(tmp_path / "state")
    for number in range(30):
        change(first, number)
    first.close()
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").glob("*.json")}
    store = FileStore(tmp_path / "state")
    for number in range(30, 300):
        change(store, number)
        change(store, number, Key(f"u{number % 7}", "linucb"))
    copy = after_power_cut(tmp_path / "state", damage, before)
    again = FileStore(copy)
    for key in list(store.keys()):
        assert content(again, key) == content(store, key)
    assert not list((copy / ".journal").iterdir())
    assert set(again.keys()) == set(store.keys())


@pytest.mark.parametrize("damage", DAMAGES)
def test_changes_of_two_processes_by_turns_survive_together(
    tmp_path: Path, damage: Callable[[Path, bytes], None]
) -> None:
    workers = [FileStore(tmp_path / "state") for _ in range(2)]
    chance, before = random.Random(7), {}
    for number in range(200):
        change(chance.choice(workers), number)
        if number == 100:
            workers[0]._journal._rotate_when_old(workers[0]._journal._segment)  # type: ignore[arg-type]
            before = {path.name: path.read_bytes() for path in (tmp_path / "state").glob("*.json")}
    again = FileStore(after_power_cut(tmp_path / "state", damage, before))
    assert content(again) == content(workers[0])


def test_who_was_reset_does_not_come_back(tmp_path: Path) -> None:
    workers = [FileStore(tmp_path / "state") for _ in range(2)]
    for key in (KEY, Key("u1", "linucb"), Key("u2", "linucb"), Key("u3", "linucb")):
        change(workers[0], 1, key)
    for user_id in ("u1", "u3"):
        assert workers[1].clear(user_id, ["egreedy/v2", "linucb"])
    change(workers[1], 2, Key("u3", "linucb"))
    workers[1].close()  # and with it, what this one has said of it
    again = FileStore(after_power_cut(tmp_path / "state", lambda *_: None, {}))
    assert set(again.keys()) == {Key("u2", "linucb"), Key("u3", "linucb")}
    assert [event.id for event in again.events(Key("u3", "linucb"))] == ["e2"]
    assert not list((again.folder / ".journal").iterdir())


def test_a_journal_in_use_is_left_to_its_process(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    change(store, 1)
    (segment,) = (tmp_path / "state" / ".journal").iterdir()
    FileStore(tmp_path / "state").close()
    assert segment.exists()
    change(store, 2)
    store.close()
    assert not segment.exists()


def test_a_record_that_is_torn_and_what_follows_was_not_acknowledged(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    for number in range(5):
        change(store, number)
    (segment,) = (tmp_path / "state" / ".journal").iterdir()
    whole, found = segment.read_bytes().rstrip(b"\0"), list[int]()
    for size in [*range(0, len(whole), 211), len(whole)]:
        copy = after_power_cut(tmp_path / "state", empty, {})
        (copy / ".journal" / segment.name).write_bytes(whole[:size] + bytes(300))
        try:
            events = FileStore(copy).events(KEY)
        except StateDamaged:
            events = []  # not even the first record is whole
        assert events == store.events(KEY)[: len(events)]
        found.append(len(events))
        shutil.rmtree(copy)
    assert found == sorted(found)
    assert set(found) == {*range(6)}


def test_a_journal_has_what_was_changed_not_the_whole_document(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    for number in range(150):
        change(store, number)
    (segment,) = (tmp_path / "state" / ".journal").iterdir()
    file = tmp_path / "state" / "u1_egreedy_v2.json"
    assert (
        len(segment.read_bytes().rstrip(b"\0")) < 3 * file.stat().st_size
    )  # 75 times as much with all of it in each record


def counted_syncs(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], None] = lambda: None) -> list[int]:
    synced: list[int] = []
    real = os.fdatasync

    def sync(file: int) -> None:
        wait()
        synced.append(file)
        real(file)

    monkeypatch.setattr("os.fdatasync", sync)
    return synced


def test_many_at_once_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who come while the first one syncs share the second sync."""
    store = FileStore(tmp_path / "state")

    def all_came() -> None:
        wait_until(lambda: len(list((tmp_path / "state").glob("u*.json"))) == 16)

    synced = counted_syncs(monkeypatch, all_came)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: change(store, number, Key(f"u{number}", "linucb")), range(16)))
    assert len(synced) <= 2


def test_what_may_be_synced_later_is_synced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path / "state")
    synced, syncs = counted_syncs(monkeypatch), list[Callable[[], None]]()
    for number in range(16):
        with store.unsynced() as sync:
            change(store, number, Key(f"u{number % 3}", "linucb"))
        syncs.append(sync)
    assert not synced
    for sync in reversed(syncs):
        sync()
    assert len(synced) == 1
    change(store, 17)
    assert len(synced) == 2


def test_who_only_looks_waits_for_what_they_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path / "state")
    synced = counted_syncs(monkeypatch)
    with store.unsynced():
        change(store, 1)
    assert not synced
    with store.transaction(KEY) as transaction:
        assert transaction.event("e1")
    assert len(synced) == 1


def test_who_finds_what_another_has_not_synced_yet_syncs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated request is answered from what the first one stored; that must be as durable by then."""
    workers = [FileStore(tmp_path / "state") for _ in range(2)]
    synced: list[str] = []
    real = os.fsync

    def sync(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink().name)
        real(file)

    with workers[0].unsynced():
        change(workers[0], 1)
    monkeypatch.setattr("os.fsync", sync)
    with workers[1].transaction(KEY) as transaction:
        assert transaction.event("e1")
    assert synced == ["u1_egreedy_v2.json", "state"]


def test_a_sync_that_fails_is_told_to_all_who_wait_and_the_next_change_is_durable_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path / "state")
    change(store, 1)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fdatasync", fail)
    with store.unsynced() as sync:
        change(store, 2)
        change(store, 2, Key("u2", "linucb"))
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            sync()
    monkeypatch.undo()
    change(store, 3)
    copy = after_power_cut(tmp_path / "state", empty, {})
    assert content(FileStore(copy)) == content(store)


def test_segments_are_closed_when_they_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 20_000)
    store = FileStore(tmp_path / "state")
    for number in range(300):
        change(store, number, Key(f"u{number}", "linucb"))
    for thread in store._journal._checkpoints:
        thread.join(10)
    (segment,) = (tmp_path / "state" / ".journal").iterdir()
    assert len(segment.read_bytes().rstrip(b"\0")) < 21_000
    assert store._journal._segment
    assert len(store._journal._segment.revisions) < 50  # what it holds in memory is as limited


def test_segments_are_closed_when_they_are_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_AGE_S", 0.05)
    store = FileStore(tmp_path / "state")
    change(store, 1)
    (segment,) = (tmp_path / "state" / ".journal").iterdir()
    for _ in range(1000):
        if not segment.exists():
            break
        threading.Event().wait(0.01)
    assert not segment.exists()
    change(store, 2)
    copy = after_power_cut(tmp_path / "state", cut, {})
    assert content(FileStore(copy)) == content(store)


def test_a_store_that_is_not_closed_is_recovered_by_the_next_one(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    change(store, 1)
    del store
    again = FileStore(tmp_path / "state")
    assert [event.id for event in again.events(KEY)] == ["e1"]
    assert not list((tmp_path / "state" / ".journal").iterdir())
