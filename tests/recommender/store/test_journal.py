"""The journal of a store of files: many changes share a sync, and a power cut takes nothing that was acknowledged."""

import os
import random
import re
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.store.test_document import EVENT, KEPT
from tipbench.core.errors import StateDamaged
from tipbench.core.files import exchange
from tipbench.core.locks import WouldWait
from tipbench.recommender.store import files, journal
from tipbench.recommender.store.document import Document
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Event, Key, Pending, UserState
from tipbench.recommender.store.journal import left_segments
from tipbench.recommender.store.locks import StoreLocks
from tipbench.recommender.store.recovery import recovered_documents

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


def foreign(path: Path, _: bytes) -> None:
    """Another user's document, whole and newer: the file was theirs before, or was going to be."""
    document = Document.new(Key("somebody", "linucb"))
    document.revision = 2**60
    document.put_state(KEPT)
    path.write_bytes(document.as_bytes())


def mixed(path: Path, _: bytes) -> None:
    """The first part of a newer version, which was not stored yet, and the rest of this one: JSON of the same size."""
    content = path.read_bytes()
    newer = re.sub(rb'"revision":\d{16}', b'"revision":%d' % (10**16 - 1), content)
    newer = newer.replace(b'"duplicates":2', b'"duplicates":3')
    middle = content.index(b'"late"')
    assert newer[:middle] != content[:middle]
    assert len(newer) == len(content)
    path.write_bytes(newer[:middle] + content[middle:])


DAMAGES = [lose, empty, zero, cut, bring_back, foreign, mixed]


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


class Disk:
    """What a disk may have after a power cut: every name, but of a file's content only what was synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at_any_moment: Callable[[], None]) -> None:
        self._synced: dict[int, bytes] = {}
        self._open: list[int] = []  # so that no other file gets the inode of one that is gone
        self.fails = ""  # the next sync of a file whose name ends like this does
        self._given_up: dict[int, bytes] = {}  # what could not be written, and passes for written since that was told
        self._at_any_moment = at_any_moment
        self._is_looking = False
        for place, name, work in (
            (os, "fsync", self._sync),
            (os, "fdatasync", self._sync),
            (files, "exchange", exchange),
        ):
            monkeypatch.setattr(place, name, partial(self._around, work))

    def close(self) -> None:
        for file in self._open:
            os.close(file)

    def copy(self, folder: Path) -> Path:
        """Return a copy of the folder as it is after a power cut now."""
        copy = folder.with_name(f"{folder.name}-after")
        shutil.rmtree(copy, ignore_errors=True)
        for path in folder.rglob("*"):
            if path.is_file() and ".locks" not in path.parts:
                (copy / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
                (copy / path.relative_to(folder)).write_bytes(self._synced.get(path.stat().st_ino, b""))
        return copy

    def _sync(self, file: int) -> None:
        path = Path(f"/proc/self/fd/{file}")
        if not path.is_file():
            return
        self._open.append(os.open(path, os.O_RDONLY))  # not a duplicate, which would hold the locks of the first
        inode, content = path.stat().st_ino, path.read_bytes()
        if self.fails and not self._is_looking and path.readlink().name.endswith(self.fails):
            self.fails, self._given_up[inode] = "", content
            raise OSError(5, "Input/output error")
        if self._given_up.get(inode) != content:
            self._synced[inode] = content

    def _around(self, work: Callable[..., None], *arguments: Any) -> None:
        if self._is_looking:
            work(*arguments)
            return
        self.look()
        work(*arguments)
        self.look()

    def look(self) -> None:
        self._is_looking = True
        self._at_any_moment()
        self._is_looking = False


def test_at_no_moment_may_a_power_cut_take_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor bring back who was reset. A file's new name may be on the disk long before its content is."""
    acknowledged: dict[Key, set[str]] = {Key(f"u{number}", "linucb"): set() for number in range(4)}
    under_way: dict[Key, set[str]] = {key: set() for key in acknowledged}
    looks = count()

    def check() -> None:
        next(looks)
        after = FileStore(disk.copy(tmp_path / "state"))
        for key, events in acknowledged.items():
            found = {event.id for event in after.events(key)}
            assert events <= found <= events | under_way[key]
        after.close()

    monkeypatch.setattr("tipbench.recommender.store.journal.SEGMENT_AGE_S", 3600)  # segments close when the test says
    workers = [FileStore(tmp_path / "state") for _ in range(2)]
    disk, chance = Disk(monkeypatch, check), random.Random(7)
    for turn in range(8):
        together, pending = chance.sample(list(acknowledged), 3), dict[Key, Pending]()
        for key in together:
            under_way[key] = {f"e{turn}"}
            store = chance.choice(workers)
            with store.unsynced() as pending[key]:
                change(store, turn, key)
            disk.look()
        for key in chance.sample(together, 3):
            pending[key].finish()
            acknowledged[key] |= under_way.pop(key)
            under_way[key] = set()
        for store in chance.sample(workers, chance.randrange(3)):  # at times, one closes its segment
            store._journal._rotate_when_old(store._journal._segment)  # type: ignore[arg-type]
            for thread in store._journal._checkpoints:
                thread.join()
        if turn % 4 == 3:
            removed = chance.choice(together)
            under_way[removed], acknowledged[removed] = acknowledged[removed], set()
            chance.choice(workers).clear(removed.user_id, ["linucb"])
            under_way[removed] = set()
    assert next(looks) > 80
    disk.close()


def test_at_no_moment_of_a_recovery_may_a_power_cut_take_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process may leave records that never were synced: a file must not be replaced by what only they have."""
    store = FileStore(tmp_path / "state")
    found = list[list[str]]()
    disk = Disk(monkeypatch, lambda: found.append(_event_ids(disk.copy(tmp_path / "state"))))
    change(store, 1)
    document = Document.read((tmp_path / "state" / "u1_egreedy_v2.json").read_bytes(), "", KEY)
    document.put(replace(EVENT, id="e2"))
    store.close()
    killed, found[:] = FileStore(tmp_path / "state"), []
    killed._write_ahead(f"{tmp_path}/state/u1_egreedy_v2.json", killed._spare("0000"), document, ExitStack())
    killed._release()
    FileStore(tmp_path / "state").close()
    disk.close()
    assert found[0] == ["e1"]
    assert found[-1] == ["e1", "e2"]
    assert all(ids in (["e1"], ["e1", "e2"]) for ids in found)


def test_a_power_cut_in_a_recovery_takes_nothing_even_if_the_journal_could_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then what the system has of the journal is not on disk, and syncing it again changes nothing."""
    store, found = FileStore(tmp_path / "state"), list[list[str]]()
    disk = Disk(monkeypatch, lambda: found.append(_event_ids(disk.copy(tmp_path / "state"))))
    change(store, 1)
    store.close()
    killed, disk.fails = FileStore(tmp_path / "state"), ".wal"
    with pytest.raises(OSError, match="Input/output error"):
        change(killed, 2)
    killed._release()
    FileStore(tmp_path / "state").close()
    disk.close()
    assert found[-1] == ["e1", "e2"]
    after = found[found.index(["e1"]) :]  # it was acknowledged
    assert all(ids in (["e1"], ["e1", "e2"]) for ids in after)


@pytest.mark.parametrize("is_newer", [False, True], ids=["as in the journal", "newer than in the journal"])
def test_a_file_that_could_not_be_synced_is_written_anew_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_newer: bool
) -> None:
    """The system tells that once, and then takes what it has in memory for written."""
    store, disk = FileStore(tmp_path / "state"), Disk(monkeypatch, lambda: None)
    change(store, 1)
    segment = store._journal._segment
    assert segment
    if is_newer:
        store._journal._segment = None  # without a checkpoint, until there is a second segment
        change(store, 2)
    disk.fails = ".json"
    if is_newer:
        segment.checkpoint(store._journal._sync_files)
    store.close()
    assert [path.name for path in (tmp_path / "state" / ".journal").iterdir()] == [segment._path.name]
    FileStore(tmp_path / "state").close()
    assert not list((tmp_path / "state" / ".journal").iterdir())
    assert _event_ids(disk.copy(tmp_path / "state")) == (["e1", "e2"] if is_newer else ["e1"])
    disk.close()


def _event_ids(folder: Path) -> list[str]:
    store = FileStore(folder)
    ids = [event.id for event in store.events(KEY)]
    store.close()
    return ids


def test_a_segment_can_be_read_after_its_process_has_removed_it(tmp_path: Path) -> None:
    """Between finding and locking it, a process that stops may have finished its checkpoint."""
    store = FileStore(tmp_path / "state")
    change(store, 1)
    store._release()
    with left_segments(tmp_path / "state" / ".journal") as (segment,):
        segment.path.unlink()
        assert list(recovered_documents([segment])) == [KEY]


def test_nobody_is_reset_while_removals_may_be_forgotten(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    change(store, 1)
    other = StoreLocks(tmp_path / "state" / ".locks")
    with ThreadPoolExecutor(1) as pool:
        with other.recovery():
            reset = pool.submit(store.clear, "u1", [KEY.policy])
            time.sleep(0.05)
            assert not reset.done()
        assert reset.result(10) == [KEY.policy]


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


def counted_syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    synced: list[int] = []
    monkeypatch.setattr("os.fdatasync", synced.append)
    return synced


def test_many_at_once_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of 16 syncs alone; the others have come by then, and share the next one."""
    store = FileStore(tmp_path / "state")
    synced: list[int] = []

    def sync(file: int) -> None:
        segment = store._journal._segment
        while segment and len(segment.revisions) < 16:
            time.sleep(0.001)
        synced.append(file)

    monkeypatch.setattr("os.fdatasync", sync)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: change(store, number, Key(f"u{number}", "linucb")), range(16)))
    assert len(synced) <= 2


def test_what_may_be_synced_later_is_synced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path / "state")
    synced, all_pending = counted_syncs(monkeypatch), list[Pending]()
    folders: list[str] = []
    monkeypatch.setattr("os.fsync", lambda file: folders.append(Path(f"/proc/self/fd/{file}").readlink().name))
    for number in range(16):
        with store.unsynced() as pending:
            change(store, number, Key(f"u{number}", "linucb"))
        all_pending.append(pending)
    assert not synced
    assert not folders  # nor the name of the segment, which was begun
    for pending in reversed(all_pending):
        pending.sync()
    for pending in all_pending:
        pending.finish()
    assert len(synced) == 1
    change(store, 17)
    assert len(synced) <= 2
    assert folders == ["state", ".journal"]


@pytest.mark.parametrize("reader", [0, 1], ids=["same process", "another one"])
def test_nobody_sees_what_is_not_synced_yet(tmp_path: Path, reader: int) -> None:
    """A repeated request is answered from what the first one stored; that must be durable by then."""
    workers = [FileStore(tmp_path / "state") for _ in range(2)]
    with workers[0].unsynced() as pending:
        change(workers[0], 1)
    pending.sync()
    assert not workers[reader].events(KEY)
    with workers[reader].unsynced(), pytest.raises(WouldWait), workers[reader].transaction(KEY):
        pass
    pending.finish()
    with workers[reader].transaction(KEY) as transaction:
        assert transaction.event("e1")


def test_a_sync_that_fails_is_told_to_all_who_wait_and_the_next_change_is_durable_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path / "state")
    change(store, 1)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fdatasync", fail)
    for key in (KEY, Key("u2", "linucb")):
        with store.unsynced() as pending:
            change(store, 2, key)
        with pytest.raises(OSError, match="Input/output error"):
            pending.finish()
    monkeypatch.undo()
    assert [event.id for event in store.events(KEY)] == ["e1"]
    assert not list((tmp_path / "state").glob(".spare-*"))
    change(store, 3)
    copy = after_power_cut(tmp_path / "state", empty, {})
    assert content(FileStore(copy)) == content(store)


def test_a_change_is_not_stored_if_the_name_of_its_segment_can_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path / "state")

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        change(store, 1)
    monkeypatch.undo()
    assert store.events(KEY) == []
    change(store, 2)
    assert [event.id for event in store.events(KEY)] == ["e2"]


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
