"""Caches keep what was used last, and count anything damaged as nothing."""

import os
from itertools import count
from pathlib import Path

import pytest

from tipbench.core.cache import DiskCache, LruCache


def test_entries_of_different_sizes_share_the_room() -> None:
    cache: LruCache[str] = LruCache(5, len)
    for text in ("aa", "bb", "cc"):
        cache.add(text, text)
    assert [cache.get(text) for text in ("aa", "bb", "cc")] == [None, "bb", "cc"]
    cache.add("dddddddd", "dddddddd")
    assert [cache.get(text) for text in ("bb", "cc", "dddddddd")] == [None, None, "dddddddd"], "the last one stays"
    cache.add("e", "e")
    assert cache.get("dddddddd") is None


def test_the_entries_that_were_used_last_stay() -> None:
    cache: LruCache[int] = LruCache(2)
    make = count().__next__
    assert [cache.get_or_make(key, make) for key in "abab"] == [0, 1, 0, 1]
    cache.get("a")
    assert cache.get_or_make("c", make) == 2
    assert cache.get("b") is None
    assert cache.get("a") == 0
    assert cache.get_or_make("b", make) == 3


def test_an_entry_that_was_dropped_is_made_anew() -> None:
    cache: LruCache[int] = LruCache(2)
    make = count().__next__
    cache.get_or_make("a", make)
    cache.drop("a")
    cache.drop("never there")
    assert cache.get_or_make("a", make) == 1
    assert cache.add("a", 7) == 1
    assert cache.add("b", 7) == 7


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", 2)
    cache.save("a", {"x": [1, "ä"]})
    assert cache.load("a") == {"x": [1, "ä"]}
    assert cache.load("b") is None
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cache" / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("data", [float("nan"), {"a": float("inf")}])
def test_what_json_does_not_have_is_not_saved(tmp_path: Path, data: object) -> None:
    DiskCache(tmp_path / "cache", 2).save("a", data)
    assert DiskCache(tmp_path / "cache", 2).load("a") is None


def test_the_oldest_files_go(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 2)
    for number, name in enumerate("ab"):
        cache.save(name, number)
        os.utime(tmp_path / name, (number, number))
    assert cache.load("a") == 0  # which makes it the newest
    cache.save("c", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]


def test_a_folder_that_can_not_be_written_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = DiskCache(tmp_path / "file", 2)
    cache.save("a", 1)
    assert cache.load("a") is None
