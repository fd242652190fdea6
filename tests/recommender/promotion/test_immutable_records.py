"""Records that are written once: whoever edits one is found out."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.core.errors import InvalidInput, NotFound, StateDamaged
from tipbench.recommender.promotion.immutable_records import read_record, read_records, write_record

CONTENT = {"schema": 1, "passed": False, "gain": 0.1, "reasons": ["naïve"], "none": None, "whole": 2.0}


def test_what_was_kept_is_read_and_the_same_has_one_id(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "for it"
    name = write_record(folder, CONTENT)
    assert write_record(folder, dict(reversed(CONTENT.items()))) == name
    assert read_record(folder, name) == {"id": name, **CONTENT}
    assert [path.name for path in folder.iterdir()] == [f"{name}.json"]
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "change",
    [{"passed": True}, {"gain": 0.11}, {"more": 1}, {"id": "0" * 16}, {"whole": 2}, {"gain": float("nan")}],
)
def test_an_edited_one_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    name = write_record(tmp_path, CONTENT)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}), encoding="utf-8")
    with pytest.raises(StateDamaged, match=f"{path} was changed after it was written.*remove it"):
        read_record(tmp_path, name)
    with pytest.raises(StateDamaged):
        list(read_records(tmp_path))


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"id": 1'])
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "0123456789abcdef.json"
    path.write_bytes(content)
    with pytest.raises(StateDamaged, match="was changed after"):
        read_record(tmp_path, path.stem)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "0123456789abcdef.json"
    make(path)
    with pytest.raises(StateDamaged, match="was changed after"):
        list(read_records(tmp_path))


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no record 0123456789abcdef in"):
        read_record(tmp_path, "0123456789abcdef")
    assert list(read_records(tmp_path / "nowhere")) == []


@given(st.text(max_size=20).filter(lambda text: len(text) != 16))
def test_no_id_leaves_the_folder(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a record id"):
        read_record(Path("/nowhere"), name)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    name = write_record(tmp_path, CONTENT)
    (tmp_path / "notes.json").write_text("mine", encoding="utf-8")
    (tmp_path / f".{name}.json.0000.part").write_text("half", encoding="utf-8")
    assert [record["id"] for record in read_records(tmp_path)] == [name]
