"""Plots of personas: within their picture, on one scale, with bands where intervals are known."""

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.server.views.made_recommender import an_outcome
from tipbench.server.ui.persona_curves import COLOURS, VIEWS, persona_plots, view_of
from tipbench.server.views.simulations import read_outcome


def drawn(show: str = "reward", data: Any = None) -> list[ElementTree.Element]:
    plots = persona_plots(read_outcome(data or an_outcome(), "it"), view_of(show))
    return [ElementTree.fromstring(plot.svg) for plot in plots]


def points(element: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = [pair.split(",") for pair in element.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.key)
def test_a_line_for_each_policy_and_all_of_it_within_the_picture(view: Any) -> None:
    for svg in drawn(view.key):
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        lines = list(svg.iter("polyline"))
        assert len(lines) == 2
        assert len(list(svg.iter("polygon"))) == (0 if view.summed else 2)
        for element in (*lines, *svg.iter("polygon")):
            assert all(0 <= x <= width and 0 <= y <= height for x, y in points(element))


def test_personas_are_on_one_scale_and_the_better_policy_is_higher() -> None:
    data = an_outcome()
    for metrics in data["personas"][1]["arms"].values():
        metrics["reward"]["over_time"] = [0.0, 0.0, 0.0]
    planner, chaotic = drawn(data=data)
    best, second = [points(line) for line in planner.iter("polyline")]
    assert all(high[1] < low[1] for high, low in zip(best, second, strict=True))
    flat = {y for line in chaotic.iter("polyline") for _, y in points(line)}
    assert len(flat) == 1
    assert flat.pop() > max(y for _, y in second), "lower than everything of the other persona"


def test_a_sum_begins_at_nothing_and_ends_with_its_interval() -> None:
    svg = drawn("total")[0]
    first, last = points(next(svg.iter("polyline")))[0], points(next(svg.iter("polyline")))[-1]
    zero = next(line for line in svg.iter("line") if line.attrib["class"] == "zero")
    assert first[1] == pytest.approx(float(zero.attrib["y1"]), abs=0.01)
    reach = [line for line in svg.iter("line") if line.attrib["class"] == "reach"]
    assert len(reach) == 2
    assert float(reach[0].attrib["y1"]) < last[1] < float(reach[0].attrib["y2"])


def test_more_policies_than_colours_are_drawn_all_the_same() -> None:
    names = tuple(f"p{number}" for number in range(COLOURS + 2))
    svg = drawn(data=an_outcome(names=names))[0]
    assert len(list(svg.iter("polyline"))) == COLOURS + 2
    kinds = {group.attrib["class"] for group in svg.iter("g")}
    assert f"arm arm-{COLOURS}" not in kinds


def test_whoever_can_not_see_it_is_told() -> None:
    svg = drawn()[0]
    assert svg.findtext("title") == "Reward of planner"
    assert svg.findtext("desc") == "egreedy: 0.500 ± 0.020 on average; linucb: 0.400 ± 0.020 on average."
