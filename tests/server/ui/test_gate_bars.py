"""Bars around 0: from the bound to the gain, with the threshold that counts for each."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.server.views.made_recommender import a_gate, made_room
from tipbench.server.ui.gates import gate_bars
from tipbench.server.views.gates import Gate


@pytest.fixture
def gate(home: Path) -> Gate:
    return made_room().gates.gate(a_gate(home))


def groups(svg: str) -> dict[str, ElementTree.Element]:
    """By the label of the bar."""
    found = ElementTree.fromstring(svg).iter("g")
    return {group.findtext("text") or "": group for group in found if group.attrib["class"].startswith("gain ")}


@pytest.mark.parametrize("narrow", [False, True])
def test_a_bar_for_all_and_one_for_each_persona(gate: Gate, narrow: bool) -> None:
    bars = groups(gate_bars(gate, narrow))
    assert list(bars) == ["all personas", "planner", "chaotic"]
    assert [bar.attrib["class"] for bar in bars.values()] == ["gain better", "gain better", "gain worse"]
    for bar in bars.values():
        rect, circle = bar.find("rect"), bar.find("circle")
        assert rect is not None
        assert circle is not None
        end = float(rect.attrib["x"]) + float(rect.attrib["width"])
        assert end == pytest.approx(float(circle.attrib["cx"]), abs=1.1)


def test_a_bound_is_drawn_on_its_side_of_the_threshold(gate: Gate) -> None:
    bars = groups(gate_bars(gate))

    def places(label: str) -> tuple[float, float]:
        line, rect = bars[label].find("line"), bars[label].find("rect")
        assert line is not None
        assert rect is not None
        return float(line.attrib["x1"]), float(rect.attrib["x"])

    for label in ("all personas", "planner"):
        needed, bound = places(label)
        assert needed < bound
    needed, bound = places("chaotic")
    assert bound < needed


def test_rules_that_nobody_knows_draw_no_threshold(gate: Gate) -> None:
    svg = gate_bars(gate.model_copy(update={"rules": {}}))
    assert "needed" not in svg
    assert list(groups(svg)) == ["all personas", "planner", "chaotic"]
