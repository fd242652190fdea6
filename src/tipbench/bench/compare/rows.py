"""The rows of a leaderboard: cells that were generated the same way, with their scores by scenario."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from tipbench.bench.records import BY_RULE, StoredCell
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.errors import StoredDataDamaged
from tipbench.statistics.interval import Interval

Scores = Mapping[str, float]  # of one cell, or means: criteria, flags and composite
RowKey = tuple[str, str, str, tuple[tuple[str, str], ...]]
_TOLERANCE = 1e-9
ScoresOf = Callable[[StoredCell], Scores | None]


@dataclass(frozen=True)
class Row:
    """One (model, prompt) with one set of settings. The scenario is the unit: repeats are averaged within it."""

    cells: tuple[StoredCell, ...]
    scores: Mapping[str, Scores]  # scenario → means over its repeats; scenarios without a score are absent
    scored_per_scenario: Mapping[str, int]  # scenario → number of cells behind its means

    @property
    def scored(self) -> int:
        return sum(self.scored_per_scenario.values())

    @property
    def name(self) -> tuple[str, str]:
        return self.cells[0].model, self.cells[0].prompt

    @cached_property
    def means(self) -> dict[str, float]:
        by_scenario = list(self.scores.values())
        return {name: fmean([one[name] for one in by_scenario]) for name in (by_scenario[0] if by_scenario else ())}


@dataclass(frozen=True)
class Rows:
    """All rows, from `make_rows` sorted by key and so in a stable order, with what their scores mean."""

    rows: tuple[Row, ...]
    scales: Mapping[str, Interval]  # score → its lowest and highest value
    units: Mapping[str, str]  # scenario → its unit: what it shares with scenarios that it is not independent of
    unit_name: str  # "persona", or "scenario" where each is a unit of its own
    factors: Mapping[str, Mapping[str, str]]  # scenario → factor → level
    provisional: bool  # the scores are provisional ones

    @property
    def scenarios(self) -> tuple[str, ...]:
        return tuple(self.units)

    @property
    def levels(self) -> dict[str, set[str]]:
        """The levels of each factor."""
        found: dict[str, set[str]] = {}
        for levels in self.factors.values():
            for factor, level in levels.items():
                found.setdefault(factor, set()).add(level)
        return found

    def in_order(self, order: Sequence[int]) -> "Rows":
        return replace(self, rows=tuple(self.rows[index] for index in order))

    def units_of(self, scenarios: Iterable[str]) -> list[str]:
        return [self.units[scenario] for scenario in scenarios]


@dataclass(frozen=True)
class Units:
    """What a comparison of rows treats as independent."""

    of_scenarios: Sequence[str] | None  # the unit of each scenario; None: every scenario is a unit
    name: str  # "persona", or "scenario"
    count: int
    suffice: bool  # whether any outcome could be significant
    clusters: int  # number of the suite's own units where scenarios are used instead; else 0


def choose_units(units: Sequence[str], name: str, suffice: Callable[[int], bool]) -> Units:
    """Choose the suite's own units if there are enough of them, else the scenarios; `units` has one per scenario."""
    own = len(set(units))
    if suffice(own) or own == len(units):
        return Units(units, name, own, suffice(own), 0)
    return Units(None, "scenario", len(units), suffice(len(units)), own)


def scales(rubric: Rubric) -> dict[str, Interval]:
    """Return the lowest and highest possible value of each score."""
    return {
        **{name: Interval(float(c.min), float(c.max)) for name, c in rubric.criteria.items()},
        **{name: Interval(0.0, 1.0) for name in rubric.flags},
        "composite": Interval(rubric.lowest()["composite"], rubric.highest_composite()),
    }


def make_rows(cells: Sequence[StoredCell], rubric: Rubric, provisional: bool = False) -> Rows:
    """Group cells into rows, with counted scores if there are any, else provisional ones; the two are never mixed.

    With `provisional`, take the provisional ones even if there are counted ones.
    """
    scores_of, counted = _scoring(cells, rubric, provisional)
    groups: dict[RowKey, list[StoredCell]] = {}
    for cell in cells:
        groups.setdefault(key_of(cell), []).append(cell)
    of_scenario: dict[str, list[StoredCell]] = {}
    for cell in cells:
        of_scenario.setdefault(cell.scenario, []).append(cell)
    factors = {name: _factors(found) for name, found in of_scenario.items()}
    # Older cells may not record their scenario's cluster; any cell that does is enough.
    clusters = {name: _cluster(found) for name, found in of_scenario.items()}
    units = {name: _unit(name, clusters[name], factors[name]) for name in of_scenario}
    named = sorted({cluster for cluster in clusters.values() if cluster})
    return Rows(
        rows=tuple(_row(group, scores_of) for _, group in sorted(groups.items())),
        scales=scales(rubric),
        units=dict(sorted(units.items(), key=lambda one: (one[1], one[0]))),
        unit_name="scenario" if not named else named[0] if len(named) == 1 else "group",
        factors=factors,
        provisional=not counted,
    )


def cell_scores(cells: Sequence[StoredCell], rubric: Rubric) -> dict[str, Scores]:
    """Return the scores of each cell as they count on the leaderboard, by run id; cells without any are left out."""
    scores_of, _ = _scoring(cells, rubric)
    found = {cell.run_id: scores_of(cell) for cell in cells if cell.failure is None}
    return {run_id: scores for run_id, scores in found.items() if scores is not None}


def _scoring(cells: Sequence[StoredCell], rubric: Rubric, provisional: bool = False) -> tuple["ScoresOf", bool]:
    """Return the function that scores a cell, and whether its scores are counted ones."""
    counted = not provisional and any(cell.is_counted(rubric.digest) and cell.judged_by != BY_RULE for cell in cells)
    return _scale_checked(_counted_scores(rubric) if counted else _provisional_scores(rubric), scales(rubric)), counted


def _factors(cells: Sequence[StoredCell]) -> dict[str, str]:
    """Return a scenario's factors; if its cells disagree, which no suite causes, the level that sorts first wins."""
    if all(cell.factors == cells[0].factors for cell in cells):
        return dict(sorted(cells[0].factors.items()))
    return dict(sorted({pair for cell in cells for pair in cell.factors.items()}, reverse=True))


def _cluster(cells: Sequence[StoredCell]) -> str | None:
    return min((cell.cluster for cell in cells if cell.cluster), default=None)


def _unit(scenario: str, cluster: str | None, factors: Mapping[str, str]) -> str:
    """Return what the scenario shares with those that it is not independent of, else the scenario itself."""
    return f"{cluster}={factors[cluster]}" if cluster and cluster in factors else scenario


def row_key(model: str, prompt: str, prompt_digest: str, settings: Mapping[str, str]) -> RowKey:
    """Return a row's identity: cells generated another way are another row, never repeats of this one."""
    return model, prompt, prompt_digest, tuple(sorted(settings.items()))


def key_of(cell: StoredCell) -> RowKey:
    return row_key(cell.model, cell.prompt, cell.prompt_digest, cell.settings)


def _row(cells: Sequence[StoredCell], scores_of: "ScoresOf") -> Row:
    found: dict[str, list[Scores]] = {}
    cells = sorted(cells, key=lambda one: (one.scenario, one.repeat, one.run_id))
    for cell in cells:
        scores = scores_of(cell) if cell.failure is None else None
        if scores is not None:
            found.setdefault(cell.scenario, []).append(scores)
    means = {scenario: _mean_scores(repeats) for scenario, repeats in found.items()}
    return Row(tuple(cells), means, {scenario: len(repeats) for scenario, repeats in found.items()})


def _mean_scores(repeats: Sequence[Scores]) -> Scores:
    if len(repeats) == 1:
        return repeats[0]
    return {name: fmean([one[name] for one in repeats]) for name in repeats[0]}


def _counted_scores(rubric: Rubric) -> ScoresOf:
    lowest, digest, names = rubric.lowest(), rubric.digest, rubric.score_names

    def scores(cell: StoredCell) -> Scores | None:
        if cell.is_empty:
            return lowest
        if not cell.is_counted(digest):
            return None
        metrics = cell.metrics
        return {name: metrics[name] for name in names}

    return scores


def _provisional_scores(rubric: Rubric) -> ScoresOf:
    lowest = rubric.lowest()

    def scores(cell: StoredCell) -> Scores | None:
        if cell.is_empty:
            return lowest
        for note in cell.judges:
            if note.provisional and note.rubric_digest == rubric.digest:
                return {name: cell.metrics[f"judge/{note.judge}/{name}"] for name in rubric.score_names}
        return None

    return scores


def _scale_checked(scores_of: ScoresOf, scales: Mapping[str, Interval]) -> ScoresOf:
    """Wrap `scores_of` to raise StoredDataDamaged where a score is missing or off its scale.

    Somebody may have edited a run by hand, and such a score would make every interval wrong.
    """

    ends = {name: (low - _TOLERANCE, high + _TOLERANCE) for name, (low, high) in scales.items()}

    def scores(cell: StoredCell) -> Scores | None:
        try:
            found = scores_of(cell)
        except KeyError as missing:
            raise StoredDataDamaged(
                f"run {cell.run_id} is marked as judged but has no metric {missing}; apply its scores again"
            ) from None
        for name, value in (found or {}).items():
            lowest, highest = ends[name]
            if not lowest <= value <= highest:
                low, high = scales[name]
                raise StoredDataDamaged(
                    f"run {cell.run_id} has {name} = {value:g}, off the rubric's scale of {low:g} to {high:g}; "
                    f"apply its scores again"
                )
        return found

    return scores


# Confidence intervals of the rows' means, computed in batches.


class IntervalRequest(NamedTuple):
    """The interval to compute: of the mean of one score of a row over some scenarios."""

    row: Row
    score: str
    scenarios: tuple[str, ...]


def intervals_of(rows: Rows, requests: Sequence[IntervalRequest]) -> list[Interval]:
    """Return the intervals in the order of the requests; those with the same pattern of units are computed together."""
    if not requests:
        return []
    import numpy as np

    from tipbench.statistics.bounded import bounded_intervals  # brings numpy

    patterns = {scenarios: _pattern(rows.units_of(scenarios)) for scenarios in {one.scenarios for one in requests}}
    by_pattern: dict[tuple[int, ...], list[int]] = {}
    for index, one in enumerate(requests):
        by_pattern.setdefault(patterns[one.scenarios], []).append(index)
    found: dict[int, Interval] = {}
    for pattern, members in by_pattern.items():
        ends = [rows.scales[requests[index].score] for index in members]
        lows = np.array([[end.low] for end in ends])
        widths = np.array([[end.high] for end in ends]) - lows
        values = [_values(requests[index]) for index in members]
        shares = bounded_intervals(np.clip((values - lows) / widths, 0, 1), 0, 1, pattern)
        for index, end, share in zip(members, ends, shares, strict=True):
            width = end.high - end.low
            found[index] = Interval(end.low + width * share.low, end.low + width * share.high)
    return [found[index] for index in range(len(requests))]


def _pattern(units: Sequence[str]) -> tuple[int, ...]:
    """Number units by first occurrence: which of them are equal, whatever their names."""
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(unit, len(numbers)) for unit in units)


def _values(request: IntervalRequest) -> list[float]:
    scores, name = request.row.scores, request.score
    return [scores[scenario][name] for scenario in request.scenarios]
