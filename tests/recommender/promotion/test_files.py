"""The history in a file: durable, whole after a kill, one writer at a time."""

import fcntl
import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.recommender.gates import BACK, LINUCB, V2, promoted
from tipbench.core.errors import Conflict, StateDamaged, StoreUnreachable
from tipbench.core.locks import WouldWait, no_waiting
from tipbench.recommender.promotion.files import FilePromotions
from tipbench.recommender.store import interface as marks


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "promotions.jsonl"


@pytest.fixture
def promotions(path: Path) -> FilePromotions:
    return FilePromotions(path)


def test_nothing_is_there_before_the_first_act(promotions: FilePromotions, path: Path) -> None:
    assert promotions.history() == ()
    assert promotions.revision() is None
    assert not path.exists()


def test_acts_are_added_and_the_mark_changes_with_each(promotions: FilePromotions, path: Path) -> None:
    marks = [promotions.revision()]
    for known, act in enumerate((V2, LINUCB)):
        promotions.append(act, known)
        marks.append(promotions.revision())
    assert FilePromotions(path).history() == (V2, LINUCB)
    assert len(set(marks)) == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_whoever_decided_on_an_older_history_is_told(promotions: FilePromotions) -> None:
    promotions.append(V2, 0)
    with pytest.raises(Conflict, match="somebody else changed it first: egreedy/v2 is live now"):
        promotions.append(promoted("egreedy", "linucb"), 0)
    assert promotions.history() == (V2,)


def test_an_act_that_does_not_follow_is_not_written(promotions: FilePromotions, path: Path) -> None:
    promotions.append(V2, 0)
    before = path.read_bytes()
    with pytest.raises(StateDamaged, match="entry 2"):
        promotions.append(promoted("egreedy", "linucb"), 1)
    assert path.read_bytes() == before


def test_one_of_many_at_once_wins_and_all_others_are_told(path: Path) -> None:
    def add(_: int) -> bool:
        try:
            FilePromotions(path).append(V2, 0)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(add, range(8))) == [False] * 7 + [True]
    assert FilePromotions(path).history() == (V2,)


def test_readers_and_writers_wait_until_an_act_is_synced(
    promotions: FilePromotions, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is let go on only after the sync, which is kept waiting here."""
    syncing, may_end = threading.Event(), threading.Event()
    synced: list[bool] = []

    def sync(file: int) -> None:
        synced.append(stat.S_ISREG(os.fstat(file).st_mode))
        syncing.set()
        assert may_end.wait(20)

    monkeypatch.setattr(os, "fsync", sync)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(promotions.append, V2, 0)
        assert syncing.wait(60)
        read = pool.submit(FilePromotions(path).history)
        second = pool.submit(FilePromotions(path).append, LINUCB, 0)
        time.sleep(0.2)
        assert [one.done() for one in (first, read, second)] == [False] * 3
        may_end.set()
        first.result()
        assert read.result() == (V2,)
        assert isinstance(second.exception(), Conflict)
    assert synced == [True, False]  # the file, then its folder


@pytest.mark.parametrize("part", [1, 40, -1])
def test_a_line_without_an_end_never_counted_and_is_taken_away(
    promotions: FilePromotions, path: Path, part: int, caplog: pytest.LogCaptureFixture
) -> None:
    promotions.append(V2, 0)
    with path.open("ab") as file:
        file.write(LINUCB.as_json().encode()[:part])
    assert promotions.history() == (V2,)
    with caplog.at_level(logging.WARNING):
        promotions.append(BACK, 1)
    assert "ended with an incomplete entry" in caplog.text
    assert promotions.history() == (V2, BACK)
    assert path.read_bytes() == f"{V2.as_json()}\n{BACK.as_json()}\n".encode()


def test_a_whole_act_without_a_line_break_is_told(promotions: FilePromotions, path: Path) -> None:
    promotions.append(V2, 0)
    before = path.read_bytes() + LINUCB.as_json().encode()
    path.write_bytes(before)
    with pytest.raises(StateDamaged, match="ends without a line break"):
        promotions.history()
    with pytest.raises(StateDamaged, match="ends without a line break"):
        promotions.append(LINUCB, 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_told_and_not_waited_for(
    promotions: FilePromotions, path: Path, make: Callable[[Path], None]
) -> None:
    make(path)
    with pytest.raises(StateDamaged, match=f"{path} is not a regular file"):
        promotions.history()
    with pytest.raises(StateDamaged, match=f"{path} is not a regular file"):
        promotions.append(V2, 0)


def test_a_frozen_writer_is_not_waited_for(
    promotions: FilePromotions, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotions.append(V2, 0)
    monkeypatch.setattr(marks, "LOCK_TIMEOUT_S", 0.1)
    with path.open() as transaction:
        fcntl.flock(transaction, fcntl.LOCK_EX)
        with pytest.raises(StoreUnreachable, match=r"held .* try again, and check whether a process hangs"):
            promotions.history()
        with pytest.raises(StoreUnreachable):
            promotions.append(LINUCB, 1)
    assert promotions.history() == (V2,)


def test_a_thread_that_must_not_wait_is_told_at_once_that_an_act_is_being_written(
    promotions: FilePromotions, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotions.append(V2, 0)
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with path.open() as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        with no_waiting(), pytest.raises(WouldWait):
            promotions.history()
    with no_waiting():
        assert promotions.history() == (V2,)
    assert not pauses


@pytest.mark.parametrize("content", [b"\n", b"{}\n", b"\xff\xfe\n", b"null\n", b'{"schema": 1}\n'])
def test_damage_is_told_with_its_place_and_nothing_is_added(
    promotions: FilePromotions, path: Path, content: bytes
) -> None:
    promotions.append(V2, 0)
    with path.open("ab") as file:
        file.write(content)
    before = path.read_bytes()
    with pytest.raises(StateDamaged, match=rf"entry 2 in {path} .*backup"):
        promotions.history()
    with pytest.raises(StateDamaged):
        promotions.append(LINUCB, 1)
    assert path.read_bytes() == before


def test_a_full_disk_leaves_what_was_there(
    promotions: FilePromotions, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotions.append(V2, 0)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, line, place: whole(file, line[:10], place))
    with pytest.raises(OSError, match="only part of an entry could be written"):
        promotions.append(LINUCB, 1)
    assert path.read_bytes() == V2.as_json().encode() + b"\n"
