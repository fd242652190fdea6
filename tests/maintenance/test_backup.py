"""What a backup takes of a home, and what it refuses. That it does so under load: tests/integration/test_backup.py."""

import json
import os
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tipbench.core.backups import backup_lock_path, finished_backups
from tipbench.core.errors import InvalidInput, LockTaken, StateDamaged
from tipbench.core.files import read_open
from tipbench.core.sqlite import Database
from tipbench.maintenance import backup
from tipbench.maintenance.backup import backup_lock, make_backup
from tipbench.recommender.store import document_cache
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, Marker, Pending, UserState

NOW = 1_777_313_112.0
OLD, NEW = "0" * 32, "f" * 32


def write(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def database(path: Path, *statements: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    for name in ("calibrations/a.json", "judges.toml", "judged/b.json", "server/secret", "server/jobs/j/log.txt"):
        write(folder / name)
    write(folder / "recommender" / "promotions.jsonl", "")
    write(folder / "recommender" / "decisions" / "1.jsonl")
    return folder


def made(home: Path, file: Path) -> list[str]:
    """The names in a backup of the home."""
    make_backup(file, home, lambda: NOW, lambda _done, _of: None)
    with tarfile.open(file) as tar:
        return [name.removeprefix("home/") for name in tar.getnames() if name.startswith("home/")]


def test_everything_is_in_it_but_what_is_made_anew(home: Path, tmp_path: Path) -> None:
    before = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    left_out = (
        *("cache/looks/x", "locks/a.lock", "weights/m.gguf", "tmp/x", "server/lock", "server/simulations.lock"),
        *("recommender/state/.locks/0001", "recommender/state/.journal/1.wal", "recommender/state/.u1.json.part"),
        "recommender/state/.spare-0001",
        *("recommender/state/u1.new", "journal/a.part", ".mlflow.db.lock", ".mlflow.db.ab.part", "judged/.x.ab12.part"),
    )
    for name in left_out:
        write(home / name)
    file = tmp_path / "b.tar.gz"
    assert set(made(home, file)) == before
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path != home] == ["b.tar.gz"]
    assert finished_backups(home) == [(file, "2026-04-27T18:05:12Z")]


def test_what_waits_comes_before_the_database_and_files_after_it(home: Path, tmp_path: Path) -> None:
    write(home / "recommender" / "state" / "u1_egreedy.json")
    database(home / "mlflow.db", "CREATE TABLE runs (run_uuid TEXT)", f"INSERT INTO runs VALUES ('{OLD}')")
    database(home / "server" / "jobs.db")
    write(home / "mlflow-artifacts" / "1" / OLD / "artifacts" / "raw.txt")
    names = made(home, tmp_path / "b.tar.gz")
    first = ["judged/b.json", "recommender/promotions.jsonl", "recommender/state/u1_egreedy.json", "server/jobs.db"]
    assert names[:5] == [*first, "mlflow.db"]
    assert {"server/jobs/j/log.txt", "recommender/decisions/1.jsonl"} < set(names[5:])


def test_files_of_runs_that_the_copied_database_does_not_have_are_left_out(home: Path, tmp_path: Path) -> None:
    database(home / "mlflow.db", "CREATE TABLE runs (run_uuid TEXT)", f"INSERT INTO runs VALUES ('{OLD}')")
    for name in (OLD, NEW, "traces/tr-1", "models/m-1"):
        write(home / "mlflow-artifacts" / "1" / name / "artifacts" / "raw.txt")
    names = made(home, tmp_path / "b.tar.gz")
    files = [name.split("/")[2] for name in names if name.startswith("mlflow-artifacts")]
    assert files == [OLD, "models", "traces"]


def test_a_database_is_copied_with_what_is_in_its_log_and_without_that(home: Path, tmp_path: Path) -> None:
    open_one = Database(home / "server" / "drafts.db", "CREATE TABLE t (x)", version=1)
    with open_one.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (7)")
    assert (home / "server" / "drafts.db-wal").stat().st_size
    assert [name for name in made(home, tmp_path / "b") if "drafts" in name] == ["server/drafts.db"]
    with tarfile.open(tmp_path / "b") as tar:
        tar.extract("home/server/drafts.db", tmp_path, filter="data")
    with closing(sqlite3.connect(tmp_path / "home" / "server" / "drafts.db")) as copy:
        assert copy.execute("SELECT x FROM t").fetchall() == [(7,)]
    open_one.close()


def test_linked_folders_are_copied_and_loops_are_not(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "disk" / "1" / "a")
    (home / "mlflow-artifacts").symlink_to(tmp_path / "disk")
    (home / "server" / "loop").symlink_to(home)
    (home / "broken").symlink_to(tmp_path / "nowhere")
    names = made(home, tmp_path / "b")
    assert "mlflow-artifacts/1/a" in names
    assert not [name for name in names if "loop" in name or "broken" in name]


def test_a_file_that_is_removed_meanwhile_stops_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = backup._files

    def with_one_more(*words: object, **named: object) -> object:
        yield from listed(*words, **named)  # type: ignore[arg-type]
        yield "judged/gone.json", home.stat()

    monkeypatch.setattr(backup, "_files", with_one_more)
    assert "judged/gone.json" not in made(home, tmp_path / "b")


def test_refused_places(home: Path, tmp_path: Path) -> None:
    taken = write(tmp_path / "taken", "mine")
    (tmp_path / "link").symlink_to(home / "server")
    for place, says in (
        (taken, "already exists, and is not replaced"),
        (home / "b.tar.gz", "is inside"),
        (tmp_path / "link" / "b.tar.gz", "is inside"),
        (tmp_path / "none" / "b.tar.gz", "does not exist; create it first"),
    ):
        with pytest.raises(InvalidInput, match=says):
            made(home, place)
    with pytest.raises(InvalidInput, match="there is nothing to back up"):
        made(tmp_path / "no home", tmp_path / "b")
    assert taken.read_text() == "mine"
    assert finished_backups(home) == []


def test_one_at_a_time(home: Path, tmp_path: Path) -> None:
    with backup_lock(home), pytest.raises(LockTaken, match=r"another backup of .* is being made"):
        made(home, tmp_path / "b")
    made(home, tmp_path / "b")


def test_what_a_killed_one_left_is_removed_and_nothing_else(home: Path, tmp_path: Path) -> None:
    left = tmp_path / "elsewhere" / ".b.tar.gz.0123abcd.part"
    write(left / "backup")
    with backup_lock(home):
        backup_lock_path(home).write_text(str(left))
    made(home, tmp_path / "b")
    assert not left.exists()
    backup_lock_path(home).write_text(str(home))  # whoever wrote that
    made(home, tmp_path / "c")
    assert home.is_dir()


def test_an_error_leaves_nothing_behind(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "mlflow.db", "SQLite format 3\0 and nothing more of one")
    with pytest.raises(InvalidInput, match=r"mlflow\.db is damaged .*so it can't be copied; move it away"):
        made(home, tmp_path / "b")
    (home / "mlflow.db").unlink()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        made(home, tmp_path / "b")
    assert caught.value.filename == str(tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_states_are_recovered_from_a_journal_that_was_left_before_they_are_copied(home: Path, tmp_path: Path) -> None:
    """As after a power cut, before any service was started."""
    store = FileStore(home / "recommender" / "state")
    with store.transaction(Key("u1", "egreedy")) as transaction:
        transaction.put_state(UserState("v1", {"n": 3}))
    store._release()  # without a checkpoint, as if the process had ended
    state = home / "recommender" / "state" / "u1_egreedy.json"
    state.write_bytes(b"")
    made(home, tmp_path / "b")
    with tarfile.open(tmp_path / "b") as tar:
        copied = tar.extractfile("home/recommender/state/u1_egreedy.json")
        assert copied
        assert json.loads(copied.read())["kept"]["state"] == {"n": 3}


def test_a_state_that_is_written_over_while_it_is_copied_is_whole_in_the_backup(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = home / "recommender" / "state" / "u1_egreedy.json"
    with closing(FileStore(state.parent)) as store, store.transaction(Key("u1", "egreedy")) as transaction:
        transaction.put_state(UserState("v1", {"n": 3}))
    torn = iter([state.read_bytes()[:100]])
    read = read_open
    monkeypatch.setattr(document_cache, "read_open", lambda *of: next(torn, None) or read(*of))
    made(home, tmp_path / "b")
    with tarfile.open(tmp_path / "b") as tar:
        copied = tar.extractfile("home/recommender/state/u1_egreedy.json")
        assert copied
        assert copied.read() == state.read_bytes()


def test_a_state_whose_file_has_a_version_that_is_not_stored_yet_is_copied_as_it_is_stored(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole one, in the file that was the user's when the backup opened it."""
    store, key, read = FileStore(home / "recommender" / "state"), Key("u1", "egreedy"), read_open
    opened, held = [True], list[Pending]()

    def change(number: int) -> None:
        with store.transaction(key) as transaction:
            transaction.put_state(UserState("v1", {"n": number}))

    def read_between(*of: Any) -> bytes:
        if not opened or not opened.pop():
            return read(*of)
        change(2)
        with store.unsynced() as pending:
            change(3)
        held.append(pending)
        return read(*of)

    change(1)
    monkeypatch.setattr(document_cache, "read_open", read_between)
    made(home, tmp_path / "b")
    held[0].finish()
    store.close()
    with tarfile.open(tmp_path / "b") as tar:
        copied = tar.extractfile("home/recommender/state/u1_egreedy.json")
        assert copied
        assert json.loads(copied.read())["kept"]["state"] == {"n": 2}


def test_another_users_state_in_a_users_file_is_not_taken_for_theirs(home: Path, tmp_path: Path) -> None:
    folder = home / "recommender" / "state"
    with closing(FileStore(folder)) as store, store.transaction(Key("u1", "egreedy")) as transaction:
        transaction.put_state(UserState("v1", {"n": 3}))
    (folder / "u2_linucb.json").write_bytes((folder / "u1_egreedy.json").read_bytes())
    with pytest.raises(StateDamaged, match=r"u2_linucb\.json can't be used .* it is about 'u1' with 'egreedy'"):
        made(home, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_states_that_are_being_moved_can_wait(home: Path, tmp_path: Path) -> None:
    with closing(FileStore(home / "recommender" / "state", exclusive=True)) as store:
        store.set_marker(Marker("MOVED", "postgresql", "postgresql://db/x", 1))
        with pytest.raises(LockTaken, match="are being moved right now"):
            made(home, tmp_path / "b")
    assert "recommender/state/MOVED" in made(home, tmp_path / "b")
