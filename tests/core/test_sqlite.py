"""Whoever can't get at a SQLite file is told within seconds, whether a process or a thread has it."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tipbench.core.errors import DatabaseBusy, InvalidInput
from tipbench.core.sqlite import ConnectionLock, Database, connect, enable_wal, file_stamp


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
        with pytest.raises(DatabaseBusy, match=r"x\.db is locked: another process"), ConnectionLock(path):
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
    lock = ConnectionLock(path, timeout_s=0.2)
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
    with pytest.raises(DatabaseBusy), lock.with_timeout(0):
        pass
    done.set()
    holder.join()
    with lock.with_timeout(0):
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


SCHEMA = (
    "CREATE TABLE one (id TEXT PRIMARY KEY);CREATE TABLE two (of TEXT REFERENCES one DEFERRABLE INITIALLY DEFERRED)"
)


def ids(database: Database) -> list[str]:
    with database.connection() as connection:
        return [name for (name,) in connection.execute("SELECT id FROM one")]


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    with closing(Database(path, SCHEMA, version=1)) as database:
        yield database


def test_a_database_of_our_own_is_private_and_found_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with opened(tmp_path / "own.db") as database, database.transaction() as connection:
            connection.execute("INSERT INTO one VALUES (?)", name)
    assert (tmp_path / "own.db").stat().st_mode & 0o777 == 0o600
    with opened(tmp_path / "own.db") as database:
        assert ids(database) == ["a", "b"]


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "own.db")) as newer:
        newer.execute("PRAGMA user_version = 9")
    with pytest.raises(InvalidInput, match=r"newer tipbench \(version 9, this one knows 1\); use that version"):
        Database(tmp_path / "own.db", SCHEMA, version=1)


@pytest.mark.parametrize("content", [b"my own notes, and rather long ones" * 100, None])
def test_what_is_no_database_is_named_and_left(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "own.db"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"own\.db can't be used: .*; move it away"):
        Database(path, SCHEMA, version=1)
    assert content is None or path.read_bytes() == content


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    def fail(database: Database) -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO one VALUES ('x')")
            raise RuntimeError

    with opened(tmp_path / "own.db") as database:
        with pytest.raises(RuntimeError):
            fail(database)
        assert ids(database) == []


def test_a_change_that_can_not_be_committed_leaves_the_file_usable(tmp_path: Path) -> None:
    """As on a full disk: else nobody could be revoked until the server is started again."""

    def end_badly(database: Database) -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO two VALUES ('x')")

    with opened(tmp_path / "own.db") as database:
        with database.connection() as connection:
            connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError):
            end_badly(database)
        with database.transaction() as connection:
            connection.execute("INSERT INTO one VALUES ('y')")
        assert ids(database) == ["y"]


def test_whoever_will_not_wait_for_another_writer_is_told(tmp_path: Path) -> None:
    with opened(tmp_path / "own.db") as database, locked(tmp_path / "own.db", "IMMEDIATE"):
        started = time.monotonic()
        with pytest.raises(DatabaseBusy), database.transaction(busy_s=0):
            pass
        assert time.monotonic() - started < 4
        assert ids(database) == []


LATER_NS = 3_600 * 10**9


def stamp(path: Path) -> str | None:
    """An hour after the last write, by the clock."""
    return file_stamp(path, lambda: time.time_ns() + LATER_NS)


@pytest.mark.parametrize("with_log", [True, False])
def test_a_stamp_changes_with_every_write_and_never_without_one(path: Path, with_log: bool) -> None:
    with closing(connect(path)) as ours:
        if with_log:
            enable_wal(ours)
        seen = {stamp(path)}
        for number in range(5):
            ours.execute("SELECT * FROM one").fetchall()
            assert stamp(path) in seen
            time.sleep(0.02)  # a tick of the file system's clock
            ours.execute("UPDATE one SET id = 'x'" if number % 2 else "INSERT INTO one VALUES ('y')")
            assert stamp(path) not in seen
            seen.add(stamp(path))


def test_a_stamp_holds_for_who_opens_and_closes_the_file(path: Path) -> None:
    with closing(connect(path)) as ours:
        enable_wal(ours)
        ours.execute("INSERT INTO one VALUES ('x')")
    before = stamp(path)
    for _ in range(2):
        with closing(connect(path)) as reader:
            assert reader.execute("SELECT count(*) FROM one").fetchone() == (1,)
            assert stamp(path) == before
    assert stamp(path) == before


def test_there_is_no_stamp_right_after_a_write_or_of_a_file_that_is_not_there(path: Path, tmp_path: Path) -> None:
    assert file_stamp(path) is None
    assert stamp(tmp_path / "none.db") is None
