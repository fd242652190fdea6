"""One row of the leaderboard: its scores with their uncertainty, what is missing, and what it costs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.bench.compare.comparison import Rank
from tipbench.bench.compare.rows import IntervalRequest, Row, RowKey, Rows, intervals_of, row_key
from tipbench.bench.records import StoredCell
from tipbench.statistics.interval import Interval

MAX_LEVELS = 50  # of a factor that rows are sliced by; with more, a level is hardly more than a scenario


# Cost of a row (tokens, seconds, model size), and the Pareto front of quality and seconds.


@dataclass(frozen=True)
class Cost:
    """Means over a row's answers; None where the engine doesn't report a figure."""

    prompt_tokens: float | None
    output_tokens: float | None
    load_s: float | None
    generate_s: float | None
    wall_s: float | None  # from request to answer
    tokens_per_s: float | None  # all output tokens over all generation time
    model_bytes: int | None
    parameters: int | None

    @property
    def seconds(self) -> float | None:
        """The latency for an app with the model in memory; where unknown, the time from request to answer."""
        return self.wall_s if self.generate_s is None else self.generate_s


def cost_of(cells: Sequence[StoredCell]) -> Cost:
    answered = [cell for cell in cells if cell.failure is None]

    def mean(name: str) -> float | None:
        return mean_known(cell.metrics.get(name) for cell in answered)

    timed = [
        (cell.metrics["gen/output_tokens"], cell.metrics["gen/generate_s"])
        for cell in answered
        if "gen/output_tokens" in cell.metrics and "gen/generate_s" in cell.metrics
    ]
    seconds = sum(time for _, time in timed)
    return Cost(
        prompt_tokens=mean("gen/prompt_tokens"),
        output_tokens=mean("gen/output_tokens"),
        load_s=mean("gen/load_s"),
        generate_s=mean("gen/generate_s"),
        wall_s=mean("gen/wall_s"),
        tokens_per_s=sum(tokens for tokens, _ in timed) / seconds if seconds > 0 else None,
        model_bytes=max((cell.model_bytes for cell in cells if cell.model_bytes), default=None),
        parameters=max((cell.parameters for cell in cells if cell.parameters), default=None),
    )


def mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def pareto_front(points: Sequence[tuple[float | None, float | None]]) -> list[bool]:
    """Return for each (quality, seconds) whether it is on the front.

    It is unless another point is at least as good and as quick, and better in one of the two. Uncertainty is ignored:
    points are means. A point with an unknown coordinate is not on the front.
    """
    known = [(quality, seconds) for quality, seconds in points if quality is not None and seconds is not None]
    return [
        quality is not None
        and seconds is not None
        and not any(q >= quality and s <= seconds and (q > quality or s < seconds) for q, s in known)
        for quality, seconds in points
    ]


@dataclass(frozen=True)
class Slice:
    """A row on the scenarios of one level of a factor."""

    means: Mapping[str, float]  # criteria, flags and composite
    interval: Interval | None  # of the composite; None where all scenarios are of one unit, which says next to nothing
    scenarios: int

    @property
    def mean(self) -> float:
        return self.means["composite"]


@dataclass(frozen=True)
class LeaderboardRow:
    """A (model, prompt) over the scenarios that it was scored on."""

    model: str
    prompt: str
    prompt_digest: str
    settings: Mapping[str, str]
    means: Mapping[str, float]  # criteria, flags and composite; empty while nothing is scored
    intervals: Mapping[str, Interval]  # 95 % each, not simultaneous
    extremes: Interval  # the composite if everything missing had the lowest or the highest score
    slices: Mapping[str, Mapping[str, Slice]]  # factor → level → the row's scores on it
    scenarios: tuple[str, ...]  # behind the means
    scored: int  # cells behind the means
    judged: int
    pending: int
    failed: int
    missing: int  # scenarios that other rows have, and this one has no cell for
    empty: int  # judged answers without a usable candidate
    candidates: float | None  # usable ones per cell, on average
    diversity: float | None
    cost: Cost
    on_front: bool  # no other row is as good and as quick, and better in one of the two
    rank: Rank | None  # None: it was not compared

    @property
    def key(self) -> RowKey:
        return row_key(self.model, self.prompt, self.prompt_digest, self.settings)

    @property
    def composite(self) -> float | None:
        return self.means.get("composite")

    @property
    def cells(self) -> int:
        return self.judged + self.pending + self.failed


def make_leaderboard_rows(
    rows: Rows, ranks: Sequence[Rank | None], rubric_digest: str, fixed_sample: bool = True
) -> list[LeaderboardRow]:
    """Make the rows; without intervals if the sample was not fixed beforehand."""
    costs = [cost_of(row.cells) for row in rows.rows]
    intervals: Sequence[Mapping[str, Interval]] = _intervals(rows) if fixed_sample else [{}] * len(rows.rows)
    slices = _slices(rows, fixed_sample)
    every = zip(rows.rows, intervals, slices, ranks, costs, _fronts(rows, ranks, costs), strict=True)
    return [_leaderboard_row(rows, rubric_digest, *one) for one in every]


def _fronts(rows: Rows, ranks: Sequence[Rank | None], costs: Sequence[Cost]) -> list[bool]:
    """Return which rows are on the Pareto front; rows that were not compared are not, unless none was compared."""
    compared = [rank is not None for rank in ranks]
    return pareto_front(
        [
            (row.means.get("composite") if was_compared or not any(compared) else None, cost.seconds)
            for row, was_compared, cost in zip(rows.rows, compared, costs, strict=True)
        ]
    )


def _leaderboard_row(
    rows: Rows,
    rubric_digest: str,
    row: Row,
    intervals: Mapping[str, Interval],
    slices: Mapping[str, Mapping[str, Slice]],
    rank: Rank | None,
    cost: Cost,
    on_front: bool,
) -> LeaderboardRow:
    first = row.cells[0]
    answered = [cell for cell in row.cells if cell.failure is None]
    judged = sum(cell.is_empty or cell.is_counted(rubric_digest) for cell in answered)
    asked = {cell.scenario for cell in row.cells}
    return LeaderboardRow(
        model=first.model,
        prompt=first.prompt,
        prompt_digest=first.prompt_digest,
        settings=first.settings,
        means=row.means,
        intervals=intervals,
        extremes=_extremes(rows, row),
        slices=slices,
        scenarios=tuple(sorted(row.scores)),
        scored=row.scored,
        judged=judged,
        pending=len(answered) - judged,
        failed=len(row.cells) - len(answered),
        missing=len(set(rows.scenarios) - asked),
        empty=sum(cell.is_empty for cell in answered),
        candidates=mean_known(float(cell.candidates) for cell in answered),
        diversity=mean_known(cell.metrics.get("answer/diversity") for cell in answered),
        cost=cost,
        on_front=on_front,
        rank=rank,
    )


def _intervals(rows: Rows) -> list[dict[str, Interval]]:
    """Return the intervals of every score, row by row."""
    requests = [
        (index, IntervalRequest(row, name, scenarios))
        for index, row in enumerate(rows.rows)
        if (scenarios := _scored(rows, row))
        for name in rows.scales
    ]
    found: list[dict[str, Interval]] = [{} for _ in rows.rows]
    for (index, one), interval in zip(requests, intervals_of(rows, [one for _, one in requests]), strict=True):
        found[index][one.score] = interval
    return found


def _slices(rows: Rows, fixed_sample: bool) -> list[dict[str, dict[str, Slice]]]:
    """Return each row's slices: its scores on each level of each factor that has at most MAX_LEVELS of them."""
    factors = {factor for factor, levels in rows.levels.items() if len(levels) <= MAX_LEVELS}
    sliced = []
    for index, row in enumerate(rows.rows):
        by_level: dict[tuple[str, str], list[str]] = {}
        for scenario in _scored(rows, row):
            for pair in rows.factors[scenario].items():
                by_level.setdefault(pair, []).append(scenario)
        sliced += [
            (index, (factor, level), IntervalRequest(row, "composite", tuple(names)))
            for (factor, level), names in sorted(by_level.items())
            if factor in factors
        ]
    has_interval = [fixed_sample and len(set(rows.units_of(one.scenarios))) > 1 for *_, one in sliced]
    intervals = iter(intervals_of(rows, [one for (*_, one), yes in zip(sliced, has_interval, strict=True) if yes]))
    found: list[dict[str, dict[str, Slice]]] = [{} for _ in rows.rows]
    for (index, (factor, level), one), yes in zip(sliced, has_interval, strict=True):
        scores = [one.row.scores[name] for name in one.scenarios]
        means = {score: fmean([each[score] for each in scores]) for score in rows.scales}
        found[index].setdefault(factor, {})[level] = Slice(means, next(intervals) if yes else None, len(scores))
    return found


def _scored(rows: Rows, row: Row) -> tuple[str, ...]:
    return tuple(name for name in rows.scenarios if name in row.scores)


def _extremes(rows: Rows, row: Row) -> Interval:
    """Return the composite's mean over all scenarios with each unscored cell at the lowest and at the highest score."""
    scale = rows.scales["composite"]
    cells = dict.fromkeys(rows.scenarios, 0)
    for cell in row.cells:
        cells[cell.scenario] += 1
    totals = []
    for scenario, asked in cells.items():
        known, count = row.scored_per_scenario.get(scenario, 0), max(asked, 1)
        totals.append((known * row.scores[scenario]["composite"] if known else 0.0, count - known, count))
    return Interval(*(fmean((total + unknown * end) / count for total, unknown, count in totals) for end in scale))
