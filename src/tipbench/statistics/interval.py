"""Intervals, for those who show them too: computing one takes numpy, having one does not."""

from typing import NamedTuple


class Interval(NamedTuple):
    """A closed interval."""

    low: float
    high: float
