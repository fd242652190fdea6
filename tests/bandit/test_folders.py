"""Folders whose files are there after a power cut."""

from pathlib import Path

import pytest

from tipbench.bandit.folders import sync_folder


def test_it_is_the_folder_that_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink()))
    sync_folder(tmp_path)
    assert synced == [tmp_path]


def test_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        sync_folder(tmp_path / "file")
