"""A backup becomes a home, or nothing changes."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.maintenance.test_archive import FILES, HEAD, written
from tipbench.core.backups import finished_backups
from tipbench.core.errors import InvalidInput, LockTaken
from tipbench.maintenance.restore import restore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "b.tar.gz").write_bytes(written())
    return tmp_path / "b.tar.gz"


def content(home: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    found.pop("backups.jsonl", None)
    return found


def made(file: Path, home: Path) -> None:
    restore(file, home, lambda _: None)


def nothing(home: Path) -> None:
    pass


def empty(home: Path) -> None:
    home.mkdir(mode=0o755)


def cut_off(home: Path) -> None:
    left = home.with_name(f".{home.name}.restoring") / "server"
    left.mkdir(parents=True)
    (left / "secret").write_text("old")


@pytest.mark.parametrize("before", [nothing, empty, cut_off])
def test_into_nothing_or_an_empty_folder(file: Path, tmp_path: Path, before: Callable[[Path], None]) -> None:
    home = tmp_path / "new" / "home" if before is nothing else tmp_path / "home"
    before(home)
    restored = restore(file, home, lambda _: None)
    assert (restored.head, restored.files) == (HEAD, len(FILES))
    assert content(home) == FILES
    assert home.stat().st_mode & 0o777 == 0o700
    assert list(home.parent.glob(".*")) == []
    assert [found.path for found in finished_backups(home)] == [file], "it has what the home has"


def test_a_link_to_a_folder_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    made(file, tmp_path / "home")
    assert content(tmp_path / "disk") == FILES


def test_where_the_home_can_not_be_replaced_it_is_filled(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a mount point, such as a volume of a container."""
    home = tmp_path / "home"
    (home / "lost+found").mkdir(parents=True)
    (home / ".restoring").mkdir()
    (home / ".restoring" / "left").touch()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == home)
    inode = home.stat().st_ino
    made(file, home)
    assert content(home) == FILES
    assert home.stat().st_ino == inode
    assert not (home / ".restoring").exists()
    (home / ".restoring").mkdir()
    with pytest.raises(InvalidInput, match="holds a part of a backup, because restoring was cut off"):
        made(file, home)


def test_a_home_with_anything_in_it_is_left(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mlflow.db").write_text("mine")
    with pytest.raises(InvalidInput, match=f"is not empty.* mv {home} {home}.before"):
        made(file, home)
    assert content(home) == {"mlflow.db": b"mine"}
    with pytest.raises(InvalidInput, match="is not a folder"):
        made(file, home / "mlflow.db")


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_damaged_backup_changes_nothing(file: Path, tmp_path: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(InvalidInput, match=r"is not a whole backup: .*Nothing was restored; use another one"):
        made(file, tmp_path / "home")
    assert list(tmp_path.iterdir()) == [file]


def test_no_file_and_a_full_disk_are_said_with_the_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="none can't be read: No such file"):
        made(tmp_path / "none", tmp_path / "home")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(InvalidInput, match=r"b\.tar\.gz can't be restored: what is in it needs more space"):
        made(file, tmp_path / "home")
    assert list(tmp_path.iterdir()) == [file]


def test_one_at_a_time(file: Path, tmp_path: Path) -> None:
    def meanwhile(_: int) -> None:
        with pytest.raises(LockTaken, match="another process is restoring"):
            made(file, tmp_path / "home")

    restore(file, tmp_path / "home", meanwhile)
    assert content(tmp_path / "home") == FILES


def test_what_is_not_as_it_was_written_is_restored_where_it_was_alone(tmp_path: Path) -> None:
    """Whole, and so what somebody stored; but paths in it can't be changed."""
    file = tmp_path / "b.tar.gz"
    before, home = tmp_path / "before", tmp_path / "home"
    file.write_bytes(written({"mlflow.db": b"no database"}, replace(HEAD, home=str(before))))
    with pytest.raises(InvalidInput, match=f"file is not a database.*restore it to {before}"):
        made(file, home)
    assert not home.exists()
    made(file, before)
    assert content(before) == {"mlflow.db": b"no database"}
