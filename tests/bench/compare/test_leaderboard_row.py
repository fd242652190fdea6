"""A row's intervals and slices, and scores that can't be true."""

from dataclasses import replace

import pytest

from tests.bench.compare.made_cells import board, cell, counted, persona_cells
from tipbench.core.errors import StoredDataDamaged
from tipbench.statistics.bounded import bounded_interval

SCORES = [9.0, 12.0, 10.0, 14.0, 8.0, 11.0, 13.0, 9.0]


def test_intervals_are_those_of_the_statistics_with_personas_as_groups() -> None:
    (row,) = board(*persona_cells("a", "v1", SCORES)).rows
    groups = [f"p{number // 2}" for number in range(8)]
    assert row.intervals["composite"] == pytest.approx(bounded_interval(SCORES, 2, 17, groups))
    thirds = [(score - 2) / 3 for score in SCORES]
    assert row.intervals["tone"] == pytest.approx(bounded_interval(thirds, 1, 5, groups))
    assert row.intervals["format_ok"] == pytest.approx(bounded_interval([1.0] * 8, 0, 1, groups))
    assert set(row.intervals) == set(row.means)


def test_equal_scores_give_an_interval_from_the_scales_ends_and_not_a_point() -> None:
    (row,) = board(*persona_cells("a", "v1", [17.0] * 8)).rows
    assert row.intervals["composite"].high == 17
    assert row.intervals["composite"].low < 10


def test_repeats_don_t_make_an_interval_narrower() -> None:
    once = board(*persona_cells("a", "v1", SCORES)).rows[0]
    thrice = board(
        *(
            replace(one, repeat=n, run_id=f"{one.run_id}{n}")
            for one in persona_cells("a", "v1", SCORES)
            for n in range(3)
        )
    ).rows[0]
    assert thrice.intervals == once.intervals
    assert thrice.scored == 24


def test_slices_are_means_over_the_scenarios_of_a_level() -> None:
    (row,) = board(*persona_cells("a", "v1", SCORES)).rows
    assert {level: one.mean for level, one in row.slices["time_slot"].items()} == {"morning": 10, "evening": 11.5}
    assert {level: one.mean for level, one in row.slices["persona"].items()} == {
        "p0": 10.5,
        "p1": 12,
        "p2": 9.5,
        "p3": 11,
    }
    assert row.slices["time_slot"]["morning"].scenarios == 4
    assert row.slices["time_slot"]["morning"].means["tone"] == pytest.approx((10 - 2) / 3)
    mornings = row.slices["time_slot"]["morning"].interval
    assert mornings
    assert mornings.low < 10 < mornings.high
    assert row.slices["persona"]["p0"].interval is None, "one persona tells next to nothing"


def test_a_score_off_its_scale_is_refused_with_its_run() -> None:
    odd = counted(cell("s1"), 9)
    odd = replace(odd, metrics={**odd.metrics, "tone": 7.0})
    with pytest.raises(StoredDataDamaged, match="run/m/v1/d1/s1/0 has tone = 7, off the rubric's scale of 1 to 5"):
        board(odd)


def test_a_judged_run_without_a_metric_is_refused_with_its_name() -> None:
    odd = counted(cell("s1"), 9)
    odd = replace(odd, metrics={name: value for name, value in odd.metrics.items() if name != "tone"})
    with pytest.raises(StoredDataDamaged, match="has no metric 'tone'"):
        board(odd)


def test_rounding_errors_at_the_end_of_a_scale_are_none() -> None:
    odd = counted(cell("s1"), 17)
    odd = replace(odd, metrics={**odd.metrics, "composite": 17 + 4e-15})
    assert board(odd).rows[0].intervals["composite"].high == pytest.approx(17)
