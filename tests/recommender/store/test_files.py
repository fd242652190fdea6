"""States in files: their names, their rights, and what a kill leaves."""

import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.store.test_document import EVENT, KEPT
from tipbench.core.errors import InvalidInput, StateDamaged, StoreUnreachable
from tipbench.core.files import overwrite, read_open
from tipbench.recommender.store import document_cache
from tipbench.recommender.store.document import Document
from tipbench.recommender.store.document_cache import DocumentCache
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, Pending

KEY = Key("u1", "egreedy/v2")


def spare_of(store: FileStore, user_id: str = "u1") -> Path:
    with store._locks.user(user_id) as lock:
        return Path(store._spare(lock))


def test_a_file_for_each_user_and_policy(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    for policy in ("egreedy", "egreedy/v2", "linucb"):
        with store.transaction(Key("u1", policy)) as transaction:
            transaction.put_state(KEPT)
    names = sorted(path.name for path in (tmp_path / "state").glob("*"))
    assert names == [".journal", ".locks", "u1_egreedy.json", "u1_egreedy_v2.json", "u1_linucb.json"]


def test_nobody_else_may_read_them(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    with store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "u1_egreedy_v2.json").stat().st_mode) == 0o600


def test_who_only_looks_writes_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    with store.transaction(KEY) as transaction:
        assert transaction.user_state is None
        assert transaction.event("e1") is None
    assert store.read_state(KEY) is None
    assert list(tmp_path.glob("*.json")) == []


def test_a_block_that_raises_changes_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    with store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    before = (tmp_path / "u1_egreedy_v2.json").read_bytes()

    def fault() -> None:
        with store.transaction(KEY) as transaction:
            transaction.put_state(replace(KEPT, late=9))
            transaction.put(EVENT)
            raise RuntimeError("fault")

    with pytest.raises(RuntimeError, match="fault"):
        fault()
    assert (tmp_path / "u1_egreedy_v2.json").read_bytes() == before


def test_what_a_killed_writer_left_is_overwritten(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    spare_of(store).write_bytes(b"x" * 100_000)
    with store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    assert store.read_state(KEY) == KEPT
    assert {path.name for path in tmp_path.glob("*.*")} == {".journal", ".locks", "u1_egreedy_v2.json"}


def test_a_new_version_is_written_in_the_file_of_the_one_before_the_last(tmp_path: Path) -> None:
    store, inodes = FileStore(tmp_path), list[int]()
    for number in range(6):
        with store.transaction(KEY) as transaction:
            transaction.put_state(replace(KEPT, late=number))
        inodes.append((tmp_path / "u1_egreedy_v2.json").stat().st_ino)
    assert len(set(inodes)) == 2
    assert inodes[:2] == inodes[2:4] == inodes[4:]


def test_a_shorter_version_has_nothing_of_a_longer_one(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for number in (10**200, 1, 10**100, 2):
        with store.transaction(KEY) as transaction:
            transaction.put_state(replace(KEPT, late=number))
        assert store.read_state(KEY) == replace(KEPT, late=number)
        assert FileStore(tmp_path).read_state(KEY) == replace(KEPT, late=number)


@pytest.mark.parametrize("cut", [100, 200, 4096, 9000])
def test_a_file_that_is_written_over_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Who reads without the lock may have opened a file that was exchanged since, and is the spare one by now."""
    store, versions = FileStore(tmp_path), list[bytes]()
    for number in range(3):
        with store.transaction(KEY) as transaction:
            transaction.put_state(replace(KEPT, late=number, state={"numbers": [number] * 5000}))
        versions.append((tmp_path / "u1_egreedy_v2.json").read_bytes())
    torn = iter([versions[2][:cut] + versions[0][cut:], versions[2][:cut]])
    read = read_open
    monkeypatch.setattr(document_cache, "read_open", lambda *of: next(torn, None) or read(*of))
    assert store.read_state(KEY) == replace(KEPT, late=2, state={"numbers": [2] * 5000})
    assert not list(torn)


def sharing_a_lock(store: FileStore, user_id: str) -> str:
    """Another user, with the same lock."""
    return next(f"v{number}" for number in range(100_000) if spare_of(store, f"v{number}") == spare_of(store, user_id))


def put(store: FileStore, late: int, key: Key = KEY) -> None:
    with store.transaction(key) as transaction:
        transaction.put_state(replace(KEPT, late=late))


def meanwhile(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Has these done before and after a file is read, the first time, by somebody who has opened it already."""
    read, left = read_open, [True]

    def read_between(*of: Any) -> bytes:
        if not left or not left.pop():
            return read(*of)
        before()
        content = read(*of)
        after()
        return content

    monkeypatch.setattr(document_cache, "read_open", read_between)


@pytest.mark.parametrize("is_own", [True, False], ids=["own", "another user's"])
def test_a_file_that_has_a_version_which_is_not_stored_yet_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    """A whole one, in a file that was the user's when it was opened."""
    store, held = FileStore(tmp_path), list[Pending]()
    put(store, 1)
    key = KEY if is_own else Key(sharing_a_lock(store, "u1"), "linucb")

    def replaced() -> None:
        put(store, 2)
        with store.unsynced() as pending:
            put(store, 3, key)
        held.append(pending)

    meanwhile(monkeypatch, replaced, lambda: None)
    assert store.read_state(KEY) == replace(KEPT, late=2)
    held[0].finish()
    assert store.read_state(key) == replace(KEPT, late=3)


def test_a_file_that_was_replaced_and_has_come_back_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had in between was of a writer who was killed, and never was stored."""
    store = FileStore(tmp_path)
    put(store, 1)

    def replaced() -> None:
        put(store, 2)
        killed = Document.read((tmp_path / "u1_egreedy_v2.json").read_bytes(), tmp_path, KEY)
        killed.revision += 1
        killed.put_state(replace(KEPT, late=3))
        overwrite(str(spare_of(store)), killed.as_bytes())

    meanwhile(monkeypatch, replaced, lambda: put(store, 4))
    assert store.read_state(KEY) == replace(KEPT, late=4)


def test_a_file_that_is_removed_while_it_is_read_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    put(store, 1)
    meanwhile(monkeypatch, lambda: None, lambda: (tmp_path / "u1_egreedy_v2.json").unlink())
    assert store.read_state(KEY) is None


def test_a_file_that_is_replaced_whenever_it_is_read_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, late, read = FileStore(tmp_path, durable=False), count(1), read_open
    put(store, 0)

    def read_too_late(*of: Any) -> bytes:
        content = read(*of)
        monkeypatch.setattr(document_cache, "read_open", read)
        put(store, next(late))
        monkeypatch.setattr(document_cache, "read_open", read_too_late)
        return content

    monkeypatch.setattr(document_cache, "read_open", read_too_late)
    with pytest.raises(StoreUnreachable, match=r"u1_egreedy_v2\.json was replaced each of the 100 times"):
        store.read_state(KEY)


def test_who_a_file_is_about_is_compared_with_its_name(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    put(store, 1)
    (tmp_path / "u2_linucb.json").write_bytes((tmp_path / "u1_egreedy_v2.json").read_bytes())
    with pytest.raises(StateDamaged, match=r"u2_linucb\.json can't be used .* it is about 'u1' with 'egreedy/v2'"):
        list(store.keys())
    assert store.policies_of("u2") == []


def test_a_copy_made_of_hard_links_stays_as_it_is(tmp_path: Path) -> None:
    store, copy = FileStore(tmp_path / "state"), tmp_path / "copy"
    for late in range(2):
        put(store, late)
    copy.mkdir()
    for path in (tmp_path / "state").glob("*.json"):
        (copy / path.name).hardlink_to(path)
    before = (copy / "u1_egreedy_v2.json").read_bytes()
    for late in range(2, 8):
        put(store, late)
    assert (copy / "u1_egreedy_v2.json").read_bytes() == before
    assert store.read_state(KEY) == replace(KEPT, late=7)


def test_a_version_of_0_2_is_read_and_never_written_over(tmp_path: Path) -> None:
    """It has no checksum, so nobody could tell whether it is whole."""
    store, path = FileStore(tmp_path), tmp_path / "u1_egreedy_v2.json"
    with store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    path.write_bytes(path.read_bytes().partition(b',"crc"')[0] + b"}\n")
    with store.transaction(KEY) as transaction:
        assert transaction.user_state == KEPT
        transaction.put_state(replace(KEPT, late=7))
    assert store.read_state(KEY) == replace(KEPT, late=7)
    assert not spare_of(store).exists()
    for number in (8, 9):
        with store.transaction(KEY) as transaction:
            transaction.put_state(replace(KEPT, late=number))
    assert spare_of(store).exists()


def test_who_is_forgotten_is_not_in_what_a_killed_writer_left(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / ".u1_egreedy_v2.json.part").write_bytes(b"u1")
    (tmp_path / "u1_egreedy_v2.new").write_bytes(b"u1")  # the name that earlier versions gave it
    (tmp_path / ".u2_egreedy_v2.json.part").write_bytes(b"u2")
    spare_of(store).write_bytes(b"u1")
    spare_of(store, "u2").write_bytes(b"u2")
    assert store.clear("u1", ["egreedy", "egreedy/v2"]) == []
    assert (spare_of(store).exists(), spare_of(store, "u2").exists()) == (False, True)
    assert [path.name for path in tmp_path.glob(".*.part")] == [".u2_egreedy_v2.json.part"]
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize("user_id", ["../u", "a/b", "", "..", "a\x00", "u" * 65, ".locks"])
def test_no_user_id_leads_out_of_the_folder(tmp_path: Path, user_id: str) -> None:
    store = FileStore(tmp_path / "state")
    with pytest.raises(InvalidInput, match="can't be used as a file name"), store.transaction(Key(user_id, "egreedy")):
        pass
    with pytest.raises(InvalidInput, match="can't be used as a file name"):
        store.read_state(Key(user_id, "egreedy"))
    with pytest.raises(InvalidInput, match="can't be used as a file name"):
        store.clear(user_id, ["egreedy"])


def test_a_damaged_file_is_refused_and_left_as_it_is_until_it_is_cleared(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = tmp_path / "u1_egreedy_v2.json"
    path.write_text("{}")
    with pytest.raises(StateDamaged), store.transaction(KEY):
        pass
    with pytest.raises(StateDamaged):
        store.read_state(KEY)
    assert path.read_text() == "{}"
    assert store.clear("u1", ["egreedy", "egreedy/v2"]) == ["egreedy/v2"]
    assert store.read_state(KEY) is None


def test_clearing_one_user_leaves_those_whose_names_begin_alike(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for user_id in ("u1", "u1_egreedy", "u"):
        with store.transaction(Key(user_id, "egreedy")) as transaction:
            transaction.put_state(KEPT)
    assert store.clear("u1", ["egreedy", "egreedy/v2", "linucb"]) == ["egreedy"]
    assert store.clear("u1", ["egreedy"]) == []
    assert set(store.keys()) == {Key("u1_egreedy", "egreedy"), Key("u", "egreedy")}


def test_a_disk_that_is_full_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    with store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)

    real = os.pwrite

    def full(file: int, content: bytes, start: int) -> int:
        return real(file, content[:10], start)  # as much as there is room for

    monkeypatch.setattr("os.pwrite", full)  # of the journal
    with pytest.raises(OSError, match="No space"), store.transaction(KEY) as transaction:
        transaction.put_state(replace(KEPT, late=9))
    monkeypatch.undo()
    assert store.read_state(KEY) == KEPT
    assert not list(tmp_path.glob(".*.part"))
    with store.transaction(KEY) as transaction:
        assert transaction.user_state == KEPT


def test_clearing_takes_along_what_a_killed_writer_left(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / ".u1_egreedy_v2.json.part").write_bytes(b"half of a state")
    assert store.clear("u1", [KEY.policy]) == []
    assert not list(tmp_path.glob(".*.part"))


def _link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_text("{}")
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("make", [os.mkfifo, _link, lambda path: path.symlink_to(path)])
def test_what_is_no_plain_file_is_damaged_at_once_and_can_be_cleared(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    store = FileStore(tmp_path)
    make(tmp_path / "u1_egreedy_v2.json")
    with pytest.raises(StateDamaged, match="not a regular file"), store.transaction(KEY):
        pass
    with pytest.raises(StateDamaged, match="not a regular file"):
        store.read_state(KEY)
    assert store.clear("u1", [KEY.policy]) == [KEY.policy]
    assert store.read_state(KEY) is None
    assert {path.name for path in tmp_path.iterdir()} <= {".journal", ".locks", "elsewhere"}


def test_a_folder_in_the_place_of_a_state_is_left_to_whoever_put_it_there(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / "u1_egreedy_v2.json").mkdir()
    with pytest.raises(StateDamaged, match="remove it"):
        store.read_state(KEY)
    with pytest.raises(StateDamaged, match="remove it"):
        store.clear("u1", [KEY.policy])


@pytest.mark.parametrize("make", [os.mkfifo, _link])
def test_nothing_is_written_to_where_a_scratch_file_leads(tmp_path: Path, make: Callable[[Path], None]) -> None:
    store = FileStore(tmp_path)
    make(spare_of(store))
    with pytest.raises(OSError, match=r"u1_egreedy_v2\.json"), store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    assert store.read_state(KEY) is None
    assert not (tmp_path / "elsewhere").exists() or (tmp_path / "elsewhere").read_text() == "{}"


@pytest.mark.parametrize("same_process", [True, False])
def test_nobody_waits_endlessly_for_somebody_who_is_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_process: bool
) -> None:
    monkeypatch.setattr("tipbench.recommender.store.interface.LOCK_TIMEOUT_S", 0.2)
    store = FileStore(tmp_path)
    frozen = store if same_process else FileStore(tmp_path)  # which knows nothing of the first one's threads
    with frozen.transaction(KEY):
        with pytest.raises(StoreUnreachable, match="has held the lock of u1 for"), store.transaction(KEY):
            pass
        with pytest.raises(StoreUnreachable, match="has held the lock of u1 for"):
            store.clear("u1", [KEY.policy])
    with store.transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    assert store.read_state(KEY) == KEPT


def test_the_journal_is_synced_before_the_block_ends_and_files_when_the_store_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(f"os.{name}", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    store = FileStore(tmp_path / "durable")
    for _ in range(2):
        with store.transaction(KEY) as transaction:
            transaction.put_state(KEPT)
    (segment,) = (tmp_path / "durable" / ".journal").iterdir()
    assert synced == ["durable", ".journal", segment.name, segment.name]
    store.close()
    assert synced[4:] == ["u1_egreedy_v2.json", "durable"]
    with FileStore(tmp_path / "not", durable=False).transaction(KEY) as transaction:
        transaction.put_state(KEPT)
    assert len(synced) == 6


def test_a_user_with_many_events_takes_little_longer_than_one_with_few(tmp_path: Path) -> None:
    """Events that are not asked for are neither parsed nor written as JSON again."""
    store, took = FileStore(tmp_path, durable=False), dict[int, list[float]]()
    keys = {number: Key(f"u{number}", "egreedy/v2") for number in (10, 390)}
    for number, key in keys.items():
        events = [replace(EVENT, id=f"e{event}", reward=0.5 if event % 2 else None) for event in range(number)]
        store.write(key, KEPT, events)
    for turn in range(60):
        for number, key in keys.items():
            started = time.process_time()
            with store.transaction(key) as transaction:
                transaction.put(replace(EVENT, id=f"next-{turn % 5}"))
            took.setdefault(number, []).append(time.process_time() - started)
    few, many = (sorted(seconds)[len(seconds) // 4] for seconds in took.values())
    assert many < 2 * few  # 1.3 to 1.4 times; 2.5 if all are parsed and written anew


def test_the_cache_is_bounded_and_notices_what_others_write(tmp_path: Path) -> None:
    store, other = FileStore(tmp_path, durable=False), FileStore(tmp_path, durable=False)
    store._cache = DocumentCache(max_bytes=100_000)
    for number in range(200):
        with store.transaction(Key(f"u{number}", "linucb")) as transaction:
            transaction.put(EVENT)
    assert 10 < len(store._cache._entries) < 100
    assert 50_000 < store._cache._bytes <= 100_000
    key = Key("u199", "linucb")
    for late in range(50):  # by turns, of the same size, within a tick of the clock
        with (store if late % 2 else other).transaction(key) as transaction:
            assert transaction.user_state == (replace(KEPT, late=10 + late - 1) if late else None)
            transaction.put_state(replace(KEPT, late=10 + late))
