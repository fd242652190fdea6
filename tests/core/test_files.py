"""Files are written whole or not at all, and read if they are files."""

import errno
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.core.errors import InvalidInput
from tipbench.core.files import (
    atomic_create,
    atomic_write,
    fsync_dir,
    make_private_folder,
    overwrite,
    read_regular,
    read_start,
    temporary_path,
    write_new,
    write_user_file,
)


def test_written_over_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    atomic_write(path, b"one")
    atomic_write(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_new(str(path), b"one", mode=0o600)
    with pytest.raises(FileExistsError):
        write_new(str(path), b"two")
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_over_in_place_unless_it_has_another_name(tmp_path: Path) -> None:
    """As in a copy of its folder that is made of hard links."""
    path, copy = tmp_path / "a", tmp_path / "copy"
    first = overwrite(str(path), b"the first")
    assert overwrite(str(path), b"second").st_ino == first.st_ino
    copy.hardlink_to(path)
    overwrite(str(path), b"third")
    assert (path.read_bytes(), copy.read_bytes()) == (b"third", b"second")
    assert (path.stat().st_nlink, path.stat().st_mode & 0o777) == (1, 0o600)


def test_a_failure_leaves_what_was_there_and_no_scratch(tmp_path: Path) -> None:
    taken = tmp_path / "a.json"
    taken.mkdir()
    with pytest.raises(IsADirectoryError):
        atomic_write(taken, b"one")
    assert list(tmp_path.iterdir()) == [taken]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("sole_writer", [True, False])
def test_a_full_disk_is_told_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, sole_writer: bool
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync" if durable else "write", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/a\.json'"):
        atomic_write(tmp_path / "a.json", b"one", durable=durable, sole_writer=sole_writer)
    assert list(tmp_path.iterdir()) == []


def test_a_sole_writer_overwrites_what_a_killed_one_left(tmp_path: Path) -> None:
    Path(temporary_path(tmp_path / "a.json")).write_text("half of")
    atomic_write(tmp_path / "a.json", "two", sole_writer=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.json", "two")]


def test_a_link_in_the_way_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("somebody else's")
    Path(temporary_path(tmp_path / "a.json")).symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"a\.json"):
        atomic_write(tmp_path / "a.json", "two", sole_writer=True)
    assert (tmp_path / "other").read_text() == "somebody else's"


def test_the_mode_is_what_was_asked_for_less_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "open", "x")
        atomic_write(tmp_path / "private", "x", mode=0o600)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("open", "private")] == [0o640, 0o600]


def test_of_many_that_create_a_file_one_does(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: atomic_create(tmp_path / "a", f"{number}\n"), range(32)))
    assert sum(made) == 1
    assert (tmp_path / "a").read_text() == f"{made.index(True)}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_that_a_user_named_and_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none/a\.json can't be written: No such file or directory"):
        write_user_file(tmp_path / "none" / "a.json", "x")


def test_it_is_the_folder_that_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink()))
    fsync_dir(tmp_path)
    assert synced == [tmp_path]


def test_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        fsync_dir(tmp_path / "file")


def test_folders_are_made_private_with_all_that_is_missing_above(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b" / "c")
    make_private_folder(tmp_path / "a" / "b" / "c")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")} == {0o700}
    (tmp_path / "a").chmod(0o755)
    make_private_folder(tmp_path / "a" / "d")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"y" * 3_000_000)
    assert read_regular(tmp_path / "x") == b"y" * 3_000_000
    assert read_start(tmp_path / "x") == b"y" * 300
    assert read_regular(tmp_path / "x", 3_000_000) == b"y" * 3_000_000


def test_what_is_no_file_or_too_large_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"y" * 1_001)
    for path, why in (
        (tmp_path / "pipe", "it is not a regular file"),
        (Path("/dev/zero"), "it is not a regular file"),
        (tmp_path, "it is not a regular file"),
        (tmp_path / "large", "it is larger than 0.001 MB"),
        (tmp_path / "none", "No such file or directory"),
    ):
        with pytest.raises(OSError, match=re.escape(why)):
            read_regular(path, 1_000)


@pytest.mark.parametrize("kind", ["pipe", "device", "aliases"])
def test_every_command_that_takes_a_file_tells_it_at_once(kind: str, tmp_path: Path) -> None:
    assert tipbench("suite", "new", "own", cwd=tmp_path).status == 0
    (tmp_path / "bomb.yaml").write_text(BOMB)
    os.mkfifo(tmp_path / "pipe.yaml")
    named = {"pipe": tmp_path / "pipe.yaml", "device": Path("/dev/zero"), "aliases": tmp_path / "bomb.yaml"}[kind]
    (tmp_path / "own" / "scenarios.yaml").unlink()
    (tmp_path / "own" / "scenarios.yaml").symlink_to(named)
    (tmp_path / "script.yaml").symlink_to(named)
    commands = [
        ("suite", "check", str(tmp_path / "own")),
        ("collect", "--config", str(named)),
        ("collect", "--models", f"scripted/{tmp_path / 'script.yaml'}"),
        ("judge", "--experiment", "tip-bench-x", "--apply", str(named)),
        ("sim", "run", "--world", str(named)),
    ]
    for command in commands:
        found: list[int] = []
        thread = threading.Thread(target=_run, args=(command, found), daemon=True)
        thread.start()
        thread.join(20)
        assert found == [2], command


def _run(command: tuple[str, ...], found: list[int]) -> None:
    found.append(tipbench(*command).status)
