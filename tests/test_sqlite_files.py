"""Whoever can't get at a SQLite file is told within seconds, whether a process or a thread has it."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tipbench.errors import DatabaseBusy
from tipbench.sqlite_files import ConnectionLock, connect, enable_wal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    with closing(connect(path)) as made:
        made.execute("CREATE TABLE one (id TEXT)")
    return path


@contextmanager
def locked(path: Path, how: str = "EXCLUSIVE") -> Iterator[None]:
    """By somebody else, as another process would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"BEGIN {how}")
        yield


def test_a_locked_file_is_told_instead_of_sqlites_error(path: Path) -> None:
    with closing(connect(path, busy_s=0.1)) as ours, locked(path):
        with pytest.raises(DatabaseBusy, match=r"x\.db is in use, somebody else"), ConnectionLock(path):
            ours.execute("SELECT * FROM one")
        with pytest.raises(DatabaseBusy), ConnectionLock(path):
            ours.execute("BEGIN IMMEDIATE")


def test_other_errors_stay_what_they_are(path: Path) -> None:
    lock = ConnectionLock(path)
    with closing(connect(path)) as ours:
        with pytest.raises(sqlite3.OperationalError, match="no such table"), lock:
            ours.execute("SELECT * FROM other")
        with pytest.raises(ZeroDivisionError), lock:
            raise ZeroDivisionError
        with lock, lock:  # and it is free again, also for whoever has it
            pass


def test_another_thread_is_not_waited_for_for_ever(path: Path) -> None:
    lock = ConnectionLock(path, patience_s=0.2)
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(10)
    started = time.monotonic()
    with pytest.raises(DatabaseBusy), lock:
        pass
    assert 0.1 < time.monotonic() - started < 5
    with pytest.raises(DatabaseBusy), lock.waited_for(0):
        pass
    done.set()
    holder.join()
    with lock.waited_for(0):
        pass


def test_many_that_open_a_new_file_at_once_all_get_write_ahead_logging(tmp_path: Path) -> None:
    def open_it(path: Path) -> str:
        with closing(connect(path)) as ours:
            enable_wal(ours)
            ours.execute("BEGIN IMMEDIATE")
            ours.execute("CREATE TABLE IF NOT EXISTS one (id TEXT)")
            ours.execute("COMMIT")
            return str(ours.execute("PRAGMA journal_mode").fetchone()[0])

    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            assert set(pool.map(open_it, [tmp_path / f"{number}.db"] * 16)) == {"wal"}


def test_a_switch_to_write_ahead_logging_gives_up_in_time(path: Path) -> None:
    with closing(connect(path, busy_s=0.05)) as ours, locked(path), pytest.raises(DatabaseBusy), ConnectionLock(path):
        enable_wal(ours, busy_s=0.2)
