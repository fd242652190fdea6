"""Which rows may be the best or which one is, how likely each is, and what it would take to separate the first two."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from tipbench.bench.compare.rows import Rows
from tipbench.core.text import plural
from tipbench.statistics.planning import LEVEL, units_to_separate

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
    from tipbench.bench.compare.inference import infer_comparison  # brings numpy

    return infer_comparison(rows, compared, scenarios, notes)


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


def too_few(rows: int, units: int, unit: str) -> str:
    """Say that no scores could separate so many rows on so few units."""
    need = units_to_separate(rows)
    return f"Too few {plural(unit, 2)} to compare {rows} variants: you have {units}, you need at least {need}."


def in_order_of_means(rows: Rows) -> list[int]:
    """Return row indices, best first: compared rows by their mean on shared scenarios, then the others by their own."""
    compared, scenarios, _ = shared_scenarios(rows)

    def order(index: int) -> tuple[bool, float, int]:
        row = rows.rows[index]
        if scenarios and index in compared:
            return False, -fmean(row.scores[one]["composite"] for one in scenarios), index
        return True, -row.means["composite"] if row.scores else inf, index

    return sorted(range(len(rows.rows)), key=order)


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
