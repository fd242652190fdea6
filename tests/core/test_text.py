"""Counts, durations, sizes and times as people write them."""

import pytest

from tipbench.core.text import counted, duration, size, utc_day, utc_minute, utc_second


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (8.4, "8 s"),
        (59.7, "1 min"),
        (130, "2 min 10 s"),
        (3600, "1 h 0 min"),
        (11_100, "3 h 5 min"),
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_counts() -> None:
    assert [counted(count, "cell") for count in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]
    assert [counted(2, word) for word in ("batch", "city", "day", "class")] == [
        "2 batches", "2 cities", "2 days", "2 classes"
    ]  # fmt: skip


def test_sizes() -> None:
    assert [size(count) for count in (None, 0, 999_400_000, 999_600_000, 1_549_000_000)] == [
        *("–", "0 MB", "999 MB", "1.0 GB", "1.5 GB")
    ]


def test_times_are_in_utc() -> None:
    at_ms = 1_777_313_112_999
    assert utc_minute(at_ms) == "2026-04-27 18:05 UTC"
    assert utc_minute(at_ms, zone=False) == "2026-04-27 18:05"
    assert utc_second(at_ms) == "2026-04-27 18:05:12 UTC"
    assert utc_day(at_ms) == "2026-04-27"
