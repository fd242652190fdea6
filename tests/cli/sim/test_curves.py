"""Curves as small as a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.cli.sim.run_report import curve, downsample


def test_low_is_low_and_high_is_high() -> None:
    assert curve([0.0, 0.5, 1.0], 10, 0.0, 1.0, "red").plain == "▁▅█"
    assert curve([0.3, 0.3], 10, 0.3, 0.3, "red").plain == "▁▁"


@given(values=st.lists(st.floats(-1, 1), min_size=1, max_size=40), width=st.integers(1, 50))
def test_it_fits_and_keeps_the_mean(values: list[float], width: int) -> None:
    points = downsample(values, width)
    assert len(points) == min(width, len(values))
    assert min(values) - 1e-9 <= min(points) <= max(points) <= max(values) + 1e-9
    if len(values) % len(points) == 0:
        assert sum(points) / len(points) == pytest.approx(sum(values) / len(values), abs=1e-9)
