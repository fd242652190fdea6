"""Inline SVG, built element by element: well-formed whatever the labels hold, and values stay within the picture."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.etree import ElementTree

from tipbench.core.untrusted import printable

_NOT_IN_XML = re.compile("[\ufffe\uffff]")
_Value = str | float


class Drawing:
    """An SVG with title and description; colours and fonts come from the style sheet, by class."""

    def __init__(self, width: float, height: float, title: str, description: str, kind: str) -> None:
        self.width, self.height = width, height
        size = {"viewBox": f"0 0 {width:g} {height:g}", "role": "img", "class": f"plot {kind}"}
        self._root = self._current = ElementTree.Element("svg", size)
        self._text_element("title", title)
        self._text_element("desc", description)

    def group(self, kind: str, title: str = "") -> None:
        """Start a group for what is drawn next, up to the next group; the title is shown on hover."""
        self._current = ElementTree.SubElement(self._root, "g", {"class": kind})
        if title:
            self._text_element("title", title)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})

    def rect(self, x: float, y: float, width: float, height: float, kind: str, rx: float = 0) -> None:
        self._element("rect", {"x": x, "y": y, "width": width, "height": height, "rx": rx, "class": kind})

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        self._element("circle", {"cx": x, "cy": y, "r": radius, "class": kind})

    def path(self, points: list[tuple[float, float]], kind: str) -> None:
        """Draw straight lines from point to point."""
        self._element("polyline", {"points": _joined(points), "class": kind})

    def area(self, points: list[tuple[float, float]], kind: str) -> None:
        """Draw the polygon with these corners."""
        self._element("polygon", {"points": _joined(points), "class": kind})

    def text(self, x: float, y: float, text: str, kind: str) -> None:
        self._text_element("text", text, {"x": x, "y": y, "class": kind})

    def svg(self) -> str:
        return ElementTree.tostring(self._root, encoding="unicode")

    def _text_element(self, tag: str, text: str, attributes: Mapping[str, _Value] | None = None) -> None:
        self._element(tag, attributes or {}).text = _NOT_IN_XML.sub("\ufffd", printable(text))

    def _element(self, tag: str, attributes: Mapping[str, _Value]) -> ElementTree.Element:
        written = {name: value if isinstance(value, str) else f"{value:.2f}" for name, value in attributes.items()}
        return ElementTree.SubElement(self._current, tag, written)


def _joined(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def shortened(text: str, limit: int) -> str:
    """Shorten a text to one line of `limit` characters by cutting out its middle: long names differ at their ends."""
    text = printable(" ".join(text.split()))
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


# Axes: from values to coordinates, and the values to label.


@dataclass(frozen=True)
class Axis:
    """Maps values from `low` to `high` to coordinates from `start` to `end`; values beyond are clamped."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high = self._measure(self.low), self._measure(self.high)
        share = (self._measure(value) - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def _measure(self, value: float) -> float:
        return log10(max(value, self.low)) if self.logarithmic else value


def even_steps(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round, evenly spaced values from `low` to `high`."""
    step = _round_step(low, high, most)
    return [round(number * step, 10) for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def steps_with_ends(low: float, high: float, most: int) -> list[float]:
    """Return round values and both ends of the scale, which matter even if they are not round."""
    near = 0.6 * _round_step(low, high, most)
    inner = [value for value in even_steps(low, high, most) if value - low > near and high - value > near]
    return [low, *inner, high]


def log_steps(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times every power of ten, as far as they lie between `low` and `high`."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    found = [first * 10.0**power for power in powers for first in (1, 2, 5)]
    return [value for value in found if low <= value <= high]


def padded_range(low: float, high: float, most: int, least: float = 1e-6) -> tuple[float, float]:
    """Extend a range outwards to round values, and to a width of at least `least`."""
    if high - low < least:
        low, high = low - least / 2, high + least / 2
    step = _round_step(low, high, most)
    return floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step


def _round_step(low: float, high: float, most: int) -> float:
    width = max(high - low, 1e-9)
    power = 10.0 ** floor(log10(width / most))
    return next((first * power for first in (1, 2, 5) if width / (first * power) <= most), 10 * power)
