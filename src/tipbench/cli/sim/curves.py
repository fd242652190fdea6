"""Curves over time, as small as a word."""

from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

_HEIGHTS = "▁▂▃▄▅▆▇█"
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")  # of policies, in their order


def curve(values: Sequence[float], width: int, low: float, high: float, colour: str) -> Text:
    """Between the lowest and the highest of all that it is shown beside."""
    points = squeezed(values, width)
    span = high - low
    places = [int((point - low) / span * len(_HEIGHTS)) if span > 0 else 0 for point in points]
    return Text("".join(_HEIGHTS[max(0, min(place, len(_HEIGHTS) - 1))] for place in places), style=colour)


def squeezed(values: Sequence[float], width: int) -> list[float]:
    """The means of as many parts as there is room for."""
    count = min(width, len(values))
    cuts = [len(values) * number // count for number in range(count + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(cuts)]
