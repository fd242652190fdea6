"""What is brought once: whole or not at all, and by one process at a time."""

from pathlib import Path

import pytest

from tests.user_cache import built_once


def test_it_is_built_once(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "part").write_text("whole")

    for _ in range(2):
        assert (built_once(tmp_path, "thing-1", build) / "part").read_text() == "whole"
    assert len(built) == 1


def test_what_could_not_be_built_is_not_there_and_is_tried_again(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        built_once(tmp_path, "thing-1", fail)
    assert {path.name for path in tmp_path.iterdir()} == {"lock"}
    assert built_once(tmp_path, "thing-1", lambda folder: (folder / "part").touch()).is_dir()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "building-killed" / "thing-1").mkdir(parents=True)
    built_once(tmp_path, "thing-1", lambda _: None)
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "thing-1"}
