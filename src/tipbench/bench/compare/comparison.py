"""Which rows may be the best or which one is, how likely each is, and what it would take to separate the first two."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from statistics import fmean

import numpy as np

from tipbench.bench.compare.rows import Row, Rows, Units, choose_units
from tipbench.core.text import plural
from tipbench.statistics.bounded import Interval
from tipbench.statistics.planning import critical_at_many_units, more_units, units_to_win
from tipbench.statistics.top_group import (
    LEVEL,
    TopGroup,
    draw_means,
    expected_loss,
    probability_best,
    separable,
    top_group,
    units_to_separate,
)
from tipbench.statistics.units import NEGLIGIBLE, Floats, Paired, means_and_errors, paired
from tipbench.statistics.winner import LEVEL as WINNER_LEVEL
from tipbench.statistics.winner import LeaderTest, leader_against_others

_MIN_UNITS = 4  # to estimate how many more are needed: fewer say next to nothing about the variance
_MIN_SHARED = 0.5  # of the scenarios; a row with fewer is left out, or all rows would be compared on those few


@dataclass(frozen=True)
class Rank:
    """How a row ranks among those that it was compared with."""

    top: bool | None  # whether it may be the best; None: can't be determined
    p_top: float | None  # p-value of its distance to the best row, in the test that decided
    p_best: float | None  # probability that it is the best


@dataclass(frozen=True)
class Needed:
    """What it would take to separate the first two rows if gap and variance stay as they are.

    None: no number of units would do.
    """

    first: int  # index of the row in `Rows`, as is `second`
    second: int
    gap: float
    more_units: int | None  # 0: they are separated already
    more_scenarios: int | None


@dataclass(frozen=True)
class Comparison:
    """Rows compared on the scenarios that all of them were scored on."""

    ranks: tuple[Rank | None, ...]  # for each row of `Rows`; None: not compared
    winner: int | None  # the row that beats every other one, tested over the suite's own units: then it alone is top
    winner_p: float | None  # p-value of the weakest of its pairs; None: no such row
    scenarios: tuple[str, ...]
    unit: str  # what was treated as independent: "persona", or "scenario"
    units: int
    level: float
    separable: bool  # whether any scores could separate rows
    clusters: int  # number of the suite's own units where scenarios were used instead; else 0
    notes: tuple[str, ...]  # caveats for the reader
    needed: Needed | None
    expected_loss: float | None  # of picking the row with the highest mean; None: fewer than two rows were compared
    independent_units: int  # behind the expected loss
    at_the_end_of_the_scale: bool  # most scores are, so the expected loss is too low


def compare_rows(rows: Rows) -> Comparison:
    compared, scenarios, notes = shared_scenarios(rows)
    if len(compared) < 2 or not scenarios:
        return not_compared(rows, scenarios, notes)
    table = score_table([rows.rows[index] for index in compared], scenarios)
    of_scenarios = rows.units_of(scenarios)
    units = choose_units(of_scenarios, rows.unit_name, lambda count: separable(len(compared), count))
    chosen = paired(table, units.of_scenarios)
    if not units.suffice:
        notes.append(too_few(chosen.rows, units.count, units.name))
    group = top_group(chosen) if units.suffice else None
    by_unit = paired(table, of_scenarios)
    test = leader_against_others(by_unit)
    winner = test.winner() if group else None
    means = draw_means(by_unit)
    ranks: list[Rank | None] = [None] * len(rows.rows)
    for index, rank in zip(compared, _ranks(group, test, probability_best(means)), strict=True):
        ranks[index] = rank
    needed = _needed(chosen, units, compared, group, ranks)
    return Comparison(
        ranks=tuple(ranks),
        winner=None if winner is None else compared[winner],
        winner_p=None if winner is None else test.weakest_p,
        scenarios=tuple(scenarios),
        unit=units.name,
        units=units.count,
        level=LEVEL,
        separable=units.suffice,
        clusters=units.clusters,
        notes=tuple(notes),
        needed=needed,
        expected_loss=expected_loss(means, int(by_unit.means.argmax())),
        independent_units=by_unit.units,
        at_the_end_of_the_scale=is_at_an_end(table, rows.scales["composite"]),
    )


def not_compared(rows: Rows, scenarios: Sequence[str] = (), notes: Sequence[str] = ()) -> Comparison:
    """Return the comparison of rows that can't be compared; the notes say why."""
    return Comparison(
        ranks=(None,) * len(rows.rows),
        winner=None,
        winner_p=None,
        scenarios=tuple(scenarios),
        unit=rows.unit_name,
        units=0,
        level=LEVEL,
        separable=False,
        clusters=0,
        notes=tuple(notes) or ("There is nothing to compare: fewer than two rows have scores.",),
        needed=None,
        expected_loss=None,
        independent_units=0,
        at_the_end_of_the_scale=False,
    )


def _ranks(group: TopGroup | None, test: LeaderTest, likely: Floats) -> list[Rank]:
    """Rank the compared rows: by the test of the leader if it proves a winner, else by the top group."""
    if group is None:
        return [Rank(None, None, None)] * len(likely)
    p = group.p if test.winner() is None else test.p
    return [Rank(bool(one > LEVEL), float(one), float(best)) for one, best in zip(p, likely, strict=True)]


def too_few(rows: int, units: int, unit: str) -> str:
    """Say that no scores could separate so many rows on so few units."""
    need = units_to_separate(rows)
    return f"Too few {plural(unit, 2)} to compare {rows} variants: you have {units}, you need at least {need}."


def is_at_an_end(table: Floats, scale: Interval) -> bool:
    """Whether more than half of the scores are within a twentieth of one end of the scale; NaN is no score."""
    known = table[~np.isnan(table)]
    near = (scale.high - scale.low) / 20
    ends = (known <= scale.low + near).sum(), (known >= scale.high - near).sum()
    return bool(max(ends) > known.size / 2)


def in_order_of_means(rows: Rows) -> list[int]:
    """Return row indices, best first: compared rows by their mean on shared scenarios, then the others by their own."""
    compared, scenarios, _ = shared_scenarios(rows)

    def order(index: int) -> tuple[bool, float, int]:
        row = rows.rows[index]
        if scenarios and index in compared:
            return False, -fmean(row.scores[one]["composite"] for one in scenarios), index
        return True, -row.means["composite"] if row.scores else inf, index

    return sorted(range(len(rows.rows)), key=order)


def score_table(rows: Sequence[Row], scenarios: Sequence[str], name: str = "composite") -> Floats:
    """Return the scores as a matrix of rows by scenarios."""
    return np.array([[row.scores[scenario][name] for scenario in scenarios] for row in rows], dtype=np.float64)


def shared_scenarios(rows: Rows) -> tuple[list[int], list[str], list[str]]:
    """Return the indices of the rows to compare, the scenarios they share, and notes on what was left out."""
    scored = [index for index, row in enumerate(rows.rows) if row.scores]
    known = [scenario for scenario in rows.scenarios if any(scenario in rows.rows[index].scores for index in scored)]
    compared = [index for index in scored if len(rows.rows[index].scores) >= _MIN_SHARED * len(known)]
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
    chosen: Paired, units: Units, compared: Sequence[int], group: TopGroup | None, ranks: Sequence[Rank | None]
) -> Needed | None:
    """Return what the cheaper of the two tests would take: that of all rows together, or that of the leader."""
    means = chosen.means
    first, second = sorted(range(len(compared)), key=lambda order: (-means[order], order))[:2]
    gap = float(means[first] - means[second])
    behind = ranks[compared[second]]
    if behind and behind.top is False:
        return Needed(compared[first], compared[second], gap, 0, 0)
    if gap <= NEGLIGIBLE:
        return Needed(compared[first], compared[second], gap, None, None)
    if group is None or chosen.units < _MIN_UNITS:
        return None
    difference = chosen.scores[first] - chosen.scores[second]
    _, error = means_and_errors(difference[np.newaxis], chosen.weights)
    deviation = float(error[0]) * sqrt(chosen.units)
    more = more_units(gap, deviation, group.critical, chosen.units, critical_at_many_units(chosen.rows, LEVEL))
    if units.of_scenarios is not None:
        ahead = np.delete(chosen.scores[first] - chosen.scores, first, axis=0) * (chosen.weights * chosen.units)
        more = min(more, max(1, units_to_win(ahead, WINNER_LEVEL) - chosen.units))
    if more == inf:
        return Needed(compared[first], compared[second], gap, None, None)
    per_unit = len(units.of_scenarios) / units.count if units.of_scenarios is not None else 1
    return Needed(compared[first], compared[second], gap, int(more), ceil(more * per_unit))
