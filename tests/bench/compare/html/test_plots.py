"""Plots are well-formed whatever they show, put every value where it belongs, and nothing outside."""

from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare.html.test_page import NASTY
from tipbench.bench.compare.html.drawing import shortened
from tipbench.bench.compare.html.plots import Bar, Point, effects_plot, interval_plot, scatter_plot
from tipbench.core.untrusted import printable
from tipbench.statistics.interval import Interval

SCALE = Interval(2, 17)
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
LABELS = st.text(max_size=60)
BARS = st.lists(
    st.builds(
        Bar,
        LABELS,
        st.none() | NUMBERS,
        st.none() | st.tuples(NUMBERS, NUMBERS).map(lambda ends: Interval(min(ends), max(ends))),
        st.none() | st.tuples(NUMBERS, NUMBERS).map(lambda ends: Interval(min(ends), max(ends))),
        st.booleans(),
    ),
    max_size=8,
)
POINTS = st.lists(
    st.builds(Point, st.integers(1, 99), LABELS, NUMBERS, st.floats(0, 1e6), st.booleans()),
    max_size=12,
    unique_by=lambda point: point.number,
)


def bar(label: str, mean: float | None, emphasis: bool = False) -> Bar:
    interval = None if mean is None else Interval(mean - 1, mean + 2)
    return Bar(label, mean, interval, None, emphasis)


def coordinates(svg: str) -> Iterator[tuple[float, float]]:
    """Every point of the picture that something is drawn at, the edges of shapes included."""
    for element in ElementTree.fromstring(svg).iter():
        at = element.attrib
        if element.tag == "line":
            yield float(at["x1"]), float(at["y1"])
            yield float(at["x2"]), float(at["y2"])
        elif element.tag == "rect":
            assert float(at["width"]) >= 0
            yield float(at["x"]), float(at["y"])
            yield float(at["x"]) + float(at["width"]), float(at["y"]) + float(at["height"])
        elif element.tag == "circle":
            radius = float(at["r"])
            yield float(at["cx"]) - radius, float(at["cy"]) - radius
            yield float(at["cx"]) + radius, float(at["cy"]) + radius
        elif element.tag == "polyline":
            yield from ((float(x), float(y)) for x, y in (pair.split(",") for pair in at["points"].split()))
        elif element.tag == "text":
            yield float(at["x"]), float(at["y"])


def check_inside(svg: str) -> None:
    _, _, width, height = map(float, ElementTree.fromstring(svg).attrib["viewBox"].split())
    assert [(x, y) for x, y in coordinates(svg) if not (0 <= x <= width and 0 <= y <= height)] == []


def means(svg: str) -> list[tuple[float, float]]:
    found = ElementTree.fromstring(svg).iter("circle")
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in found]


def texts(svg: str, kind: str = "") -> list[str]:
    found = ElementTree.fromstring(svg).iter("text")
    return [one.text or "" for one in found if kind in one.attrib["class"].split() or not kind]


@given(BARS, st.booleans())
def test_bars_stay_inside_the_picture(bars: list[Bar], narrow: bool) -> None:
    check_inside(interval_plot(bars, SCALE, "t", narrow))
    check_inside(effects_plot({"Models": bars, "Prompts": bars[:2]}, "t", narrow))


@given(POINTS, st.booleans())
def test_points_stay_inside_the_picture(points: list[Point], narrow: bool) -> None:
    check_inside(scatter_plot(points, "composite", "t", narrow))


@pytest.mark.parametrize("text", NASTY)
def test_a_label_is_a_text_and_nothing_else(text: str) -> None:
    for svg in (
        interval_plot([bar(text, 5)], SCALE, text),
        effects_plot({text: [bar(text, 5)]}, text),
        scatter_plot([Point(1, text, 5, 2, True)], text, text),
    ):
        root = ElementTree.fromstring(svg)
        assert {one.tag for one in root.iter()} <= {
            "svg", "title", "desc", "g", "line", "rect", "circle", "polyline", "text",
        }  # fmt: skip
        assert root[0].text == printable(text).replace("\ufffe", "\ufffd")


def test_rows_come_in_their_order_and_higher_means_lie_further_right() -> None:
    for narrow in (False, True):
        svg = interval_plot([bar("a", 12), bar("b", 9.5), bar("c", None), bar("d", 3)], SCALE, "t", narrow)
        found = means(svg)
        assert len(found) == 3
        assert all(before[1] < after[1] for before, after in pairwise(found))
        assert all(before[0] > after[0] for before, after in pairwise(found))
        assert texts(svg, "label") == ["a", "b", "c", "d"]
        assert "not scored" in texts(svg, "figures")


def test_the_ends_of_the_scale_are_the_ends_of_the_axis() -> None:
    svg = interval_plot([bar("a", 2), bar("b", 17), bar("c", 9.5)], SCALE, "t")
    (low, _), (high, _), (middle, _) = means(svg)
    assert middle == pytest.approx((low + high) / 2, abs=0.01)
    ticks = texts(svg, "tick")
    assert (ticks[0], ticks[-1]) == ("2", "17")
    assert len(set(ticks)) == len(ticks)


def test_only_the_top_group_is_emphasised_and_said_to_be_it() -> None:
    svg = interval_plot([Bar("a", 9, Interval(8, 10), None, True, "● top"), bar("b", 5)], SCALE, "t")
    kinds = [one.attrib["class"] for one in ElementTree.fromstring(svg).iter("g")]
    assert kinds == ["axis", "emphasis", "muted"]
    assert texts(svg, "figures") == ["9.00 (8.0 to 10.0) ● top", "5.00 (4.0 to 7.0)"]


def test_what_is_missing_is_outlined() -> None:
    svg = interval_plot([Bar("a", 9, Interval(8, 10), Interval(2, 17), True), bar("b", 5)], SCALE, "t")
    outlined = [one for one in ElementTree.fromstring(svg).iter("rect") if one.attrib["class"] == "possible"]
    assert len(outlined) == 1
    assert "with what is missing 2.00 to 17.00" in svg


def test_no_effect_lies_on_the_line() -> None:
    svg = effects_plot({"Models": [bar("up", 3), bar("none", 0), bar("down", -3)]}, "t")
    zero = [one for one in ElementTree.fromstring(svg).iter("line") if one.attrib["class"] == "zero"]
    up, none, down = (x for x, _ in means(svg))
    assert [float(one.attrib["x1"]) for one in zero] == [none]
    assert up - none == pytest.approx(none - down, abs=0.02)
    assert texts(svg, "figures")[0] == "+3.00 (+2.0 to +5.0)"


def test_factors_are_on_the_same_scale_and_have_headings() -> None:
    svg = effects_plot({"Models": [bar("m", 4)], "Prompts": [bar("p", 4)]}, "t")
    assert len({x for x, _ in means(svg)}) == 1
    assert texts(svg, "heading") == ["Models", "Prompts"]


POINTS_OF_THREE = [Point(1, "slow", 14, 8, True), Point(2, "quick", 9, 2, True), Point(3, "beaten", 8, 5, False)]


def test_better_is_higher_and_quicker_is_further_left() -> None:
    svg = scatter_plot(POINTS_OF_THREE, "composite", "t")
    beaten, quick, slow = means(svg)
    assert quick[0] < beaten[0] < slow[0]
    assert slow[1] < quick[1] < beaten[1]
    assert texts(svg, "point") == ["3", "2. quick", "1. slow"]


def test_the_front_is_a_step_line_that_never_falls_and_leaves_out_beaten_points() -> None:
    svg = scatter_plot(POINTS_OF_THREE, "composite", "t")
    (line,) = ElementTree.fromstring(svg).iter("polyline")
    corners = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert len(corners) == 4
    for (x1, y1), (x2, y2) in pairwise(corners):
        assert x2 >= x1
        assert y2 <= y1
        assert x1 == x2 or y1 == y2
    _, quick, slow = means(svg)
    assert corners[:3] == [quick, (slow[0], quick[1]), slow]  # nothing better can be had before the slow one is done


def test_seconds_are_logarithmic_only_where_they_differ_a_lot() -> None:
    near = scatter_plot(POINTS_OF_THREE, "composite", "t")
    far = scatter_plot([*POINTS_OF_THREE, Point(4, "very slow", 5, 900, False)], "composite", "t")
    assert "logarithmic" not in near
    assert "logarithmic" in far
    check_inside(far)
    assert len(texts(far, "tick")) > 5


@pytest.mark.parametrize("narrow", [False, True])
def test_points_in_one_place_and_no_points_can_be_drawn(narrow: bool) -> None:
    same = [Point(number, "x", 9.0, 0.0, True) for number in range(1, 6)]
    for points in (same, same[:1], []):
        svg = scatter_plot(points, "composite", "t", narrow)
        assert len(means(svg)) == len(points)
        check_inside(svg)
    check_inside(interval_plot([bar("a", 5)], Interval(5, 5), "t", narrow))
    check_inside(effects_plot({}, "t", narrow))
    check_inside(effects_plot({"Models": [Bar("a", 0.0, None, None, False)]}, "t", narrow))


@given(st.text(max_size=100), st.integers(5, 60))
def test_a_shortened_name_keeps_both_ends(text: str, limit: int) -> None:
    found = shortened(text, limit)
    assert len(found) <= limit
    shown = printable(" ".join(text.split()))
    if len(shown) > limit:
        start, end = found.split("…", 1) if "…" not in shown else (found[:2], found[-2:])
        assert shown.startswith(start)
        assert shown.endswith(end)
    else:
        assert found == shown
