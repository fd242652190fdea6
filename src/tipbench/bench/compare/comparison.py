"""Which rows may be the best, how likely each is, and what it would take to tell the first two apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from statistics import fmean

import numpy as np

from tipbench.bench.compare.rows import Row, Rows
from tipbench.core.text import plural
from tipbench.statistics.planning import critical_at_many_units, more_units
from tipbench.statistics.top_group import LEVEL, probability_best, separable, top_group, units_to_separate
from tipbench.statistics.units import NOTHING, Floats, Paired, means_and_errors, paired

_ENOUGH_UNITS = 4  # to say how many more it takes: fewer tell next to nothing about the scatter
_ENOUGH_SHARED = 0.5  # of the scenarios; a row with fewer is not compared, or all would be compared on those few


@dataclass(frozen=True)
class Rank:
    """Where a row stands among those that it was compared with."""

    top: bool | None  # may it be the best? None: that can't be told
    p_top: float | None  # how easily chance explains that it lies so far behind the best
    p_best: float | None  # how likely it is the best


@dataclass(frozen=True)
class Needed:
    """What it would take to tell the first two apart, if things stay as they are; None: no number would do."""

    first: int
    second: int  # rows, by their index in `Rows`
    gap: float
    more_units: int | None  # 0: they are apart
    more_scenarios: int | None


@dataclass(frozen=True)
class Comparison:
    """Rows compared on the scenarios that all of them were scored on."""

    ranks: tuple[Rank | None, ...]  # for each row of `Rows`; None: not compared
    scenarios: tuple[str, ...]
    unit: str  # what was taken for independent: "persona", or "scenario"
    units: int
    level: float
    told: bool  # could anything be told apart?
    clusters: int  # how many of the suite's own units there are, where scenarios had to do instead; else 0
    notes: tuple[str, ...]  # what a reader must know about it
    needed: Needed | None


def compare_rows(rows: Rows) -> Comparison:
    compared, scenarios, notes = shared_scenarios(rows)
    if len(compared) < 2 or not scenarios:
        if not notes:
            notes = ["There is nothing to compare: fewer than two rows have scores."]
        nowhere = (None,) * len(rows.rows)
        return Comparison(nowhere, tuple(scenarios), rows.unit_name, 0, LEVEL, False, 0, tuple(notes), None)
    table = score_table([rows.rows[index] for index in compared], scenarios)
    by_unit = paired(table, rows.units_of(scenarios))
    chosen, unit, clusters = by_unit, rows.unit_name, 0
    if by_unit.units < len(scenarios) and not separable(by_unit.rows, by_unit.units):
        chosen, unit, clusters = paired(table), "scenario", by_unit.units
    told = separable(chosen.rows, chosen.units)
    if not told:
        notes.append(
            f"{chosen.rows} rows can't be told apart on {chosen.units} {plural(unit, chosen.units)}, whatever the "
            f"scores; it takes {units_to_separate(chosen.rows)}."
        )
    group = top_group(chosen) if told else None
    likely = probability_best(by_unit) if told else ()
    ranks: list[Rank | None] = [None] * len(rows.rows)
    for order, index in enumerate(compared):
        if group:
            ranks[index] = Rank(bool(group.members[order]), float(group.p[order]), float(likely[order]))
        else:
            ranks[index] = Rank(None, None, None)
    needed = _needed(chosen, compared, group.critical if group else None, ranks, len(scenarios) / chosen.units)
    told_by = (unit, chosen.units, LEVEL, told, clusters)
    return Comparison(tuple(ranks), tuple(scenarios), *told_by, tuple(notes), needed)


def in_order_of_means(rows: Rows) -> list[int]:
    """The best first: rows that can be compared, by the scenarios they are compared on; then by what they have."""
    compared, scenarios, _ = shared_scenarios(rows)

    def order(index: int) -> tuple[bool, float, int]:
        row = rows.rows[index]
        if scenarios and index in compared:
            return False, -fmean(row.scores[one]["composite"] for one in scenarios), index
        return True, -row.means["composite"] if row.scores else inf, index

    return sorted(range(len(rows.rows)), key=order)


def score_table(rows: Sequence[Row], scenarios: Sequence[str], name: str = "composite") -> Floats:
    """Rows down, scenarios across."""
    return np.array([[row.scores[scenario][name] for scenario in scenarios] for row in rows], dtype=np.float64)


def shared_scenarios(rows: Rows) -> tuple[list[int], list[str], list[str]]:
    """Which rows to compare, on which scenarios, and what was left out."""
    scored = [index for index, row in enumerate(rows.rows) if row.scores]
    known = [scenario for scenario in rows.scenarios if any(scenario in rows.rows[index].scores for index in scored)]
    compared = [index for index in scored if len(rows.rows[index].scores) >= _ENOUGH_SHARED * len(known)]
    shared = [scenario for scenario in known if all(scenario in rows.rows[index].scores for index in compared)]
    notes = []
    left_out = [" × ".join(rows.rows[index].name) for index in scored if index not in compared]
    if left_out:
        notes.append(f"Scores on fewer than half of the scenarios, too few to be compared: {', '.join(left_out)}.")
    if len(compared) > 1 and not shared:
        notes.append("No scenario was scored in every row, so rows can't be compared.")
    elif len(compared) > 1 and len(shared) < len(known):
        notes.append(
            f"Rows are compared on the {len(shared)} of {len(known)} scenarios that all of them have scores on."
        )
    return compared, shared, notes


def _needed(
    chosen: Paired, compared: Sequence[int], critical: float | None, ranks: Sequence[Rank | None], per_unit: float
) -> Needed | None:
    means = chosen.means
    first, second = sorted(range(len(compared)), key=lambda order: (-means[order], order))[:2]
    gap = float(means[first] - means[second])
    behind = ranks[compared[second]]
    if behind and behind.top is False:
        return Needed(compared[first], compared[second], gap, 0, 0)
    if gap <= NOTHING:
        return Needed(compared[first], compared[second], gap, None, None)
    if critical is None or chosen.units < _ENOUGH_UNITS:
        return None
    difference = chosen.scores[first] - chosen.scores[second]
    _, error = means_and_errors(difference[np.newaxis], chosen.weights)
    scatter = float(error[0]) * sqrt(chosen.units)
    more = more_units(gap, scatter, critical, chosen.units, critical_at_many_units(chosen.rows, LEVEL))
    if more == inf:
        return Needed(compared[first], compared[second], gap, None, None)
    return Needed(compared[first], compared[second], gap, int(more), ceil(more * per_unit))
