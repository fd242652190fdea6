"""What shadows did is read once, day by day, and drops are counted by process."""

from pathlib import Path
from typing import Any

import pytest

from tests.recommender.making import Clock, a_profile, a_recommender, a_request
from tests.recommender.waiting import LONG_S, wait_until
from tests.server.views.made_recommender import a_signal, signal
from tipbench.core.errors import StateDamaged
from tipbench.core.paths import signals_folder
from tipbench.recommender.log.segmented_log import SegmentLog
from tipbench.recommender.shadows.runner import open_shadows
from tipbench.recommender.shadows.statistics import DAY_MS, ShadowDay, ShadowStatisticsReader
from tipbench.recommender.store.files import FileStore


def days(home: Path) -> list[ShadowDay]:
    return ShadowStatisticsReader(signals_folder(home)).read()


def dropped(full: int = 0, late: int = 0, failed: int = 0, published: int = 0) -> dict[str, Any]:
    return {"counts": {"published": published, "dropped": {"full": full, "late": late, "failed": failed}}}


def test_no_signals_are_no_days(tmp_path: Path) -> None:
    assert days(tmp_path) == []


def test_a_day_of_a_shadow(tmp_path: Path) -> None:
    signal(tmp_path, *(a_signal(number) for number in range(8)), a_signal(8, candidates=["a", "b"]))
    (day,) = days(tmp_path)
    assert (day.shadow, day.day_ms, day.signals, day.agreed) == ("egreedy-v2-shadow", 0, 9, 3)
    assert day.agreement == pytest.approx(3 / 9)
    assert day.by_chance == pytest.approx((8 / 4 + 1 / 2) / 9)
    assert (day.latency_ms, day.latency_95_ms) == pytest.approx((6.0, 9.6))
    assert (day.profile_dimensions, day.neutral) == (5, 2.0)


def test_what_a_real_shadow_says_is_understood(tmp_path: Path) -> None:
    store, clock = FileStore(tmp_path / "state", durable=False), Clock()
    shadows = open_shadows(["egreedy-v2-shadow"], store, signals_folder(tmp_path), clock, timeout_s=LONG_S)
    recommender = a_recommender(tmp_path, clock, store, shadows)
    recommender.score("egreedy", a_request("e1"))
    recommender.score("egreedy", a_request("e2", profile=a_profile()))
    wait_until(lambda: shadows.status()[0].counts.published == 2)
    recommender.close()
    (day,) = days(tmp_path)
    assert (day.signals, day.offered, day.by_chance, day.profile_dimensions) == (2, 2, 0.1, 5)
    assert day.neutral == 2.5, "all five without a profile, none with one"


def test_days_are_told_apart_by_utc_the_newest_first_and_so_are_shadows(tmp_path: Path) -> None:
    signal(tmp_path, a_signal(at_ms=DAY_MS - 1), a_signal(at_ms=DAY_MS), a_signal(at_ms=DAY_MS, shadow="other"))
    assert [(day.day_ms, day.shadow, day.signals) for day in days(tmp_path)] == [
        (DAY_MS, "egreedy-v2-shadow", 1),
        (DAY_MS, "other", 1),
        (0, "egreedy-v2-shadow", 1),
    ]


def test_drops_are_counted_on_from_where_each_process_was(tmp_path: Path) -> None:
    one, other = (SegmentLog(signals_folder(tmp_path), lambda: 0.0) for _ in range(2))
    one.append(a_signal(0, **dropped(late=2)))
    one.append(a_signal(1, at_ms=DAY_MS, **dropped(late=2, full=1)))
    one.append({**a_signal(2, at_ms=DAY_MS, **dropped(late=2, full=1, failed=4)), "signal": "shadow:s:counts"})
    one.close()
    newest, oldest = [day for day in days(tmp_path) if day.shadow != "s"]
    assert dict(oldest.dropped) == {"full": 0, "late": 2, "failed": 0}
    assert dict(newest.dropped) == {"full": 1, "late": 0, "failed": 0}
    (closed,) = [day for day in days(tmp_path) if day.shadow == "s"]
    assert (closed.signals, closed.agreement, sum(closed.dropped.values())) == (0, None, 7)
    folder = signals_folder(tmp_path)
    (first,) = folder.glob("*.jsonl")
    other.append(a_signal(3, **dropped(late=1)))
    other.close()
    (second,) = set(folder.glob("*.jsonl")) - {first}
    second.rename(first.with_name(first.name.replace("1970", "1971")))  # another process that has the same number
    assert sum(day.dropped["late"] for day in days(tmp_path)) == 2 + 2 + 1


def test_drops_from_before_the_log_goes_back_to_are_on_no_day(tmp_path: Path) -> None:
    signal(tmp_path, a_signal(7, **dropped(late=900, published=7)), a_signal(8, **dropped(late=902, published=8)))
    (day,) = days(tmp_path)
    assert dict(day.dropped) == {"full": 0, "late": 2, "failed": 0}


def test_it_reads_on_from_where_it_was_and_begins_anew_when_a_file_is_gone(tmp_path: Path) -> None:
    reader = ShadowStatisticsReader(signals_folder(tmp_path))
    log = SegmentLog(signals_folder(tmp_path), lambda: 0.0)
    log.append(a_signal(0))
    assert [day.signals for day in reader.read()] == [1]
    log.append(a_signal(1))
    assert [day.signals for day in reader.read()] == [2]
    assert [day.signals for day in reader.read()] == [2]
    log.close()
    for path in signals_folder(tmp_path).iterdir():
        path.unlink()
    assert reader.read() == []


@pytest.mark.parametrize(
    "line", [{"schema": 2}, {"schema": 1}, {**a_signal(), "candidates": []}, {**a_signal(), "at_ms": "x"}]
)
def test_another_kind_of_log_is_told(tmp_path: Path, line: dict[str, object]) -> None:
    signal(tmp_path, line)
    with pytest.raises(StateDamaged, match=r"contains a line of another kind of log .*; move it elsewhere"):
        days(tmp_path)


def test_other_signals_are_none_of_its_business(tmp_path: Path) -> None:
    signal(tmp_path, {"schema": 1, "signal": "something", "at_ms": 0})
    assert days(tmp_path) == []


def test_what_a_foreign_line_holds_is_told_shortly_and_without_control_characters(tmp_path: Path) -> None:
    signal(tmp_path, {"schema": 1, "signal": "shadow:x", "at_ms": "\x1b[2J" * 1000})
    with pytest.raises(StateDamaged) as told:
        ShadowStatisticsReader(signals_folder(tmp_path)).read()
    assert "\x1b" not in str(told.value)
    assert len(str(told.value)) < 500 + len(str(tmp_path))
