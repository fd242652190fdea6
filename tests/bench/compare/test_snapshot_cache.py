"""What is kept comes back as it was, or not at all; it holds nothing that should stay where it is."""

import os
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare.conftest import NAME, SECRET, WRITTEN_BY_A_MODEL, patient
from tipbench.bench.compare import snapshot as kept_look
from tipbench.bench.compare.snapshot import MAX_FILES, Snapshot, SnapshotDiskCache, load_snapshot
from tipbench.bench.records import JudgeNote
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunStore

MARK = "mark"


@pytest.fixture
def snapshot(store: RunStore, experiment: Experiment, tmp_path: Path) -> Snapshot:
    """With one of everything that a cell can have."""
    seen = load_snapshot(store, experiment, tmp_path / "elsewhere")
    notes = (JudgeNote("ana", "digest", "one", False), JudgeNote("lexical", "digest", "two", True, False))
    odd = replace(seen.cells[0], judges=notes, metrics={"composite": 0.1 + 0.2, "tone": 5e-324}, cluster="persona")
    failed = replace(seen.cells[1], failure="\ud800 \x00 … ü", parameters=None, model_bytes=2**60)
    return replace(seen, cells=(odd, failed, *seen.cells[2:]))


@pytest.fixture
def kept(tmp_path: Path) -> SnapshotDiskCache:
    return SnapshotDiskCache(tmp_path / "looks", "http://box", "1")


def file_of(kept: SnapshotDiskCache) -> Path:
    return kept._cache._folder / kept._name


def test_a_look_comes_back_as_it_was(snapshot: Snapshot, kept: SnapshotDiskCache) -> None:
    kept.save(snapshot, MARK)
    again = kept.load(snapshot.experiment, MARK)
    assert again == snapshot
    assert repr(again) == repr(snapshot)  # also the types


def test_a_look_at_nothing(snapshot: Snapshot, kept: SnapshotDiskCache) -> None:
    nothing = replace(snapshot, cells=(), batches=(), rubric=None)
    kept.save(nothing, MARK)
    assert kept.load(snapshot.experiment, MARK) == nothing


def test_only_for_the_same_mark_store_experiment_and_version(
    snapshot: Snapshot, kept: SnapshotDiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.save(snapshot, MARK)
    assert kept.load(snapshot.experiment, "another") is None
    for address, number in (("http://other", "1"), ("http://box", "2")):
        other = SnapshotDiskCache(tmp_path / "looks", address, number)
        assert other.load(snapshot.experiment, MARK) is None
        file_of(kept).rename(file_of(other))  # even if it lay in the other's place
        assert other.load(snapshot.experiment, MARK) is None
        file_of(other).rename(file_of(kept))
    assert kept.load(snapshot.experiment, MARK)
    for name, value in (("__version__", "9.9"), ("_FORMAT", "of another time")):
        with monkeypatch.context() as patch:
            patch.setattr(kept_look, name, value)
            assert SnapshotDiskCache(tmp_path / "looks", "http://box", "1").load(snapshot.experiment, MARK) is None


@patient
@given(st.binary(max_size=300))
def test_any_other_bytes_are_nothing(snapshot: Snapshot, kept: SnapshotDiskCache, content: bytes) -> None:
    file_of(kept).parent.mkdir(exist_ok=True)
    file_of(kept).write_bytes(content)
    assert kept.load(snapshot.experiment, MARK) is None
    assert kept.writers() == {}


@patient
@given(st.data())
def test_a_damaged_file_is_nothing(snapshot: Snapshot, kept: SnapshotDiskCache, data: st.DataObject) -> None:
    kept.save(snapshot, MARK)
    whole = file_of(kept).read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from([whole[:place], whole + b"x", whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]])
    )
    file_of(kept).write_bytes(damaged)
    assert kept.load(snapshot.experiment, MARK) is None
    assert kept.writers() == {}


@patient
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["state", "cells", "batches", "rubric", "columns"]), inner)
        ),
        max_leaves=12,
    )
)
def test_other_data_with_a_right_digest_is_nothing(snapshot: Snapshot, kept: SnapshotDiskCache, data: object) -> None:
    for other in (data, {"state": MARK, "cells": data, "batches": data, "rubric": data}):
        kept._write("look", other)
        assert kept.load(snapshot.experiment, MARK) is None
    kept._write("writers", data)
    assert kept.load(snapshot.experiment, MARK) is None
    kept.writers()  # whatever it finds, no error


def test_a_folder_that_can_not_be_written_is_no_error(snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = SnapshotDiskCache(tmp_path / "file", "http://box", "1")
    kept.save(snapshot, MARK)
    assert kept.load(snapshot.experiment, MARK) is None


def test_it_is_its_owners_alone_and_holds_no_text_of_a_model_and_no_secret(
    snapshot: Snapshot, kept: SnapshotDiskCache
) -> None:
    kept.save(snapshot, MARK)
    assert file_of(kept).stat().st_mode & 0o777 == 0o600
    content = zlib.decompress(file_of(kept).read_bytes().partition(b"\n")[2]).decode()
    assert snapshot.cells[0].run_id in content
    for hidden in (WRITTEN_BY_A_MODEL, SECRET, "<think>", NAME):
        assert hidden not in content


def test_there_are_never_more_than_so_many(snapshot: Snapshot, tmp_path: Path) -> None:
    folder = tmp_path / "looks"
    folder.mkdir()
    (folder / ".left.part").write_text("of somebody who was killed")
    os.utime(folder / ".left.part", (0, 0))
    for number in range(MAX_FILES + 3):
        kept = SnapshotDiskCache(folder, "http://box", str(number))
        kept.save(snapshot, MARK)
        os.utime(file_of(kept), (number + 1, number + 1))
    assert len(list(folder.iterdir())) == MAX_FILES
    assert SnapshotDiskCache(folder, "http://box", "0").load(snapshot.experiment, MARK) is None
    assert kept.load(snapshot.experiment, MARK) == snapshot


def test_since_when_marks_were_seen(snapshot: Snapshot, kept: SnapshotDiskCache) -> None:
    kept.save(snapshot, MARK)
    assert kept.writers() == {}
    seen = {("tipbench.writing:a", "1"): 5.0, ("tipbench.writing:b", "2"): 6.5}
    kept.save_writers(seen)
    assert kept.writers() == seen
    assert kept.load(snapshot.experiment, MARK) is None
