"""Confidence intervals of rows' means, many at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tipbench.bench.compare.rows import Row, Rows
from tipbench.statistics.bounded import Interval, bounded_intervals


class Wanted(NamedTuple):
    """The mean of one score of a row over some scenarios."""

    row: Row
    score: str
    scenarios: tuple[str, ...]


def intervals_of(rows: Rows, wanted: Sequence[Wanted]) -> list[Interval]:
    """In the order in which they are wanted; those over scenarios that belong together alike are computed together."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for index, one in enumerate(wanted):
        alike.setdefault(_pattern(rows.units_of(one.scenarios)), []).append(index)
    found: dict[int, Interval] = {}
    for pattern, members in alike.items():
        ends = [rows.scales[wanted[index].score] for index in members]
        lows = np.array([[end.low] for end in ends])
        widths = np.array([[end.high] for end in ends]) - lows
        values = [_values(wanted[index]) for index in members]
        shares = bounded_intervals(np.clip((values - lows) / widths, 0, 1), 0, 1, pattern)
        for index, end, share in zip(members, ends, shares, strict=True):
            width = end.high - end.low
            found[index] = Interval(end.low + width * share.low, end.low + width * share.high)
    return [found[index] for index in range(len(wanted))]


def _pattern(units: Sequence[str]) -> tuple[int, ...]:
    """Which of them are the same, whatever they are called."""
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(unit, len(numbers)) for unit in units)


def _values(wanted: Wanted) -> list[float]:
    return [wanted.row.scores[scenario][wanted.score] for scenario in wanted.scenarios]
