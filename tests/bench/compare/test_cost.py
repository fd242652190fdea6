"""Cost beside quality."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare.made_cells import board, cell, counted, failed
from tipbench.bench.compare.leaderboard_row import cost_of, pareto_front
from tipbench.bench.records import StoredCell


def timed(found: StoredCell, tokens: float, generate_s: float) -> StoredCell:
    times = {"gen/output_tokens": tokens, "gen/generate_s": generate_s, "gen/load_s": 0.5, "gen/prompt_tokens": 100.0}
    return replace(found, metrics={**found.metrics, **times}, model_bytes=7, parameters=9)


def test_tokens_a_second_are_all_tokens_over_all_seconds() -> None:
    cost = cost_of([timed(cell("s1"), 10, 1), timed(cell("s2"), 90, 3), failed(cell("s3")), cell("s4")])
    assert (cost.tokens_per_s, cost.output_tokens, cost.generate_s, cost.load_s) == (25, 50, 2, 0.5)
    assert (cost.model_bytes, cost.parameters, cost.prompt_tokens) == (7, 9, 100)


def test_without_times_nothing_is_made_up() -> None:
    cost = cost_of([cell("s1")])
    assert (cost.tokens_per_s, cost.seconds, cost.model_bytes) == (None, None, None)
    assert cost_of([replace(cell(), metrics={"gen/wall_s": 3.0})]).seconds == 3
    assert cost_of([timed(cell(), 10, 0)]).tokens_per_s is None


def test_the_front_holds_what_nothing_beats() -> None:
    points = [(12.0, 3.0), (11.0, 1.0), (10.0, 2.0), (12.0, 4.0), (None, 0.1), (13.0, None)]
    assert pareto_front(points) == [True, True, False, False, False, False]


@given(st.lists(st.tuples(st.none() | st.integers(2, 17).map(float), st.none() | st.integers(1, 9).map(float))))
def test_every_point_is_on_the_front_or_beaten_by_one_that_is(points: list[tuple[float | None, float | None]]) -> None:
    front = pareto_front(points)
    for (quality, seconds), on_front in zip(points, front, strict=True):
        if quality is None or seconds is None:
            assert not on_front
            continue
        beaten = [
            q >= quality and s <= seconds and (q, s) != (quality, seconds)
            for (q, s), other in zip(points, front, strict=True)
            if other and q is not None and s is not None
        ]
        assert on_front != any(beaten)


def test_the_leaderboard_marks_the_front() -> None:
    cells = [
        timed(counted(cell("s1", "good"), 15), 10, 4),
        timed(counted(cell("s1", "quick"), 9), 10, 1),
        timed(counted(cell("s1", "neither"), 8), 10, 2),
    ]
    assert {one.model: one.on_front for one in board(*cells).rows} == {
        "good": True,
        "quick": True,
        "neither": False,
    }


def test_seconds_are_those_of_generating_where_they_are_known() -> None:
    both = replace(cell(), metrics={"gen/wall_s": 3.0, "gen/generate_s": 2.0})
    assert cost_of([both]).seconds == pytest.approx(2)
