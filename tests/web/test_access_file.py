"""The file of tokens: whole changes only, and nothing done to a file that is not ours."""

import sqlite3
from pathlib import Path

import pytest

from tipbench.errors import InvalidInput
from tipbench.web.access_file import AccessFile


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "access.db"
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(InvalidInput, match=r"made by a newer tipbench \(version 2\)"):
        AccessFile(path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "access.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(InvalidInput, match=r"access\.db can't be used: .*; move it away"):
        AccessFile(path)


def _break_off(file: AccessFile) -> None:
    with file.write() as db:
        db.execute("INSERT INTO ended_session VALUES ('x', 1)")
        raise RuntimeError


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    file = AccessFile(tmp_path / "access.db")
    with pytest.raises(RuntimeError):
        _break_off(file)
    assert file.read().ended_sessions == frozenset()
    with file.write() as db:
        db.execute("INSERT INTO ended_session VALUES ('y', 1)")
    assert file.read().ended_sessions == {"y"}
    file.close()


def test_what_it_holds_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file, other = AccessFile(tmp_path / "access.db"), AccessFile(tmp_path / "access.db")
    before = file.read()
    assert file.read() is before
    with other.write() as db:
        db.execute("INSERT INTO ended_session VALUES ('x', 1)")
    assert file.read().ended_sessions == {"x"}
    file.close()
    other.close()


def _end_badly(file: AccessFile) -> None:
    with file.write() as db:
        db.execute("CREATE TABLE one (id TEXT PRIMARY KEY)")
        db.execute("CREATE TABLE other (of TEXT REFERENCES one DEFERRABLE INITIALLY DEFERRED)")
        db.execute("INSERT INTO other VALUES ('x')")


def test_a_change_that_can_not_be_committed_leaves_the_file_usable(tmp_path: Path) -> None:
    """As on a full disk: else nobody could be revoked until the server is started again."""
    file = AccessFile(tmp_path / "access.db")
    file._writer.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(sqlite3.IntegrityError):
        _end_badly(file)
    with file.write() as db:
        db.execute("INSERT INTO ended_session VALUES ('y', 1)")
    assert file.read().ended_sessions == {"y"}
    file.close()
