"""Files in one step."""

import errno
import os
from pathlib import Path

import pytest

from tipbench.bandit.whole_files import write_whole


def test_written_over_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there_and_no_scratch(tmp_path: Path) -> None:
    taken = tmp_path / "a.json"
    taken.mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(taken, b"one")
    assert list(tmp_path.iterdir()) == [taken]


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/a\.json'"):
        write_whole(tmp_path / "a.json", b"one")
    assert list(tmp_path.iterdir()) == []
