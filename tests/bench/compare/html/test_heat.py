"""Colours go over the data's range, and don't make much of little."""

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.bench.compare.html.heat import STEPS, HeatScale, heat_scale
from tipbench.statistics.interval import Interval

RUBRIC = Interval(2, 17)


@given(st.lists(st.floats(2, 17)))
def test_the_scale_holds_all_means_and_is_never_too_narrow(means: list[float]) -> None:
    scale = heat_scale(RUBRIC, means)
    assert scale.high - scale.low >= 3 - 1e-9
    assert scale.low >= RUBRIC.low
    assert scale.high <= RUBRIC.high
    assert all(scale.low <= mean <= scale.high for mean in means)
    assert all(0 <= scale.share(mean) <= 1 for mean in means)


@pytest.mark.parametrize(
    ("means", "scale"),
    [
        ([5.72, 14.31], HeatScale(5, 15)),
        ([11.0, 11.0], HeatScale(9, 13)),
        ([17.0], HeatScale(14, 17)),
        ([2.0], HeatScale(2, 5)),
        ([], HeatScale(2, 17)),
    ],
)
def test_the_ends_are_round(means: list[float], scale: HeatScale) -> None:
    assert heat_scale(RUBRIC, means) == scale


def test_a_higher_mean_has_a_stronger_colour() -> None:
    scale = HeatScale(5, 15)
    assert [scale.share(mean) for mean in (5, 10, 15, 99)] == [0, 0.5, 1, 1]


def test_every_step_has_its_colour_in_the_style_sheet() -> None:
    css = (files("tipbench.bench.compare.html") / "report.css").read_text(encoding="utf-8")
    scale = HeatScale(5, 15)
    steps = [scale.step(5 + number / 4) for number in range(41)]
    assert steps == sorted(steps)
    assert set(steps) == set(range(STEPS + 1))
    assert [step for step in steps if f".heat-{step} {{ --heat: {step / STEPS:g}; }}" not in css] == []
