"""Heat maps: models × prompts, and rows × levels of a factor. The figures are always written out, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from tipbench.bench.compare.leaderboard import Leaderboard, prompt_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow, Slice
from tipbench.statistics.interval import Interval

STEPS = 20  # from the palest to the strongest colour; each is a class in the style sheet
_MIN_SPAN = 0.2  # of the rubric's scale, so that small differences stay pale


@dataclass(frozen=True)
class HeatScale:
    """The range of the colours: that of the data, or differences on a long scale would be invisible."""

    low: float
    high: float

    def share(self, mean: float) -> float:
        """Return 0 for the palest colour up to 1 for the strongest."""
        return round(min(1.0, max(0.0, (mean - self.low) / (self.high - self.low))), 3)

    def step(self, mean: float) -> int:
        return round(STEPS * self.share(mean))


@dataclass(frozen=True)
class HeatMap:
    """Models down, prompts across; a cell holds several rows only where their labels are the same."""

    models: tuple[str, ...]
    prompts: tuple[str, ...]
    cells: Mapping[tuple[str, str], tuple[LeaderboardRow, ...]]


@dataclass(frozen=True)
class SliceTable:
    """A factor with its levels, which are the columns."""

    factor: str
    levels: Mapping[str, int]  # level → the largest number of scenarios on which a row has scores

    def slice_of(self, row: LeaderboardRow, level: str) -> Slice | None:
        return row.slices.get(self.factor, {}).get(level)


def grid_means(board: Leaderboard) -> list[float]:
    return [row.composite for row in board.rows if row.composite is not None]


def slice_means(board: Leaderboard) -> list[float]:
    return [one.mean for row in board.rows for levels in row.slices.values() for one in levels.values()]


def heat_scale(rubric: Interval, means: Sequence[float]) -> HeatScale:
    """Return the range of the means, rounded outwards and never narrower than a fifth of the rubric's scale."""
    low, high = min(means, default=rubric.low), max(means, default=rubric.high)
    padding = max(0.0, _MIN_SPAN * (rubric.high - rubric.low) - (high - low)) / 2
    low, high = low - padding, high + padding
    over, under = max(0.0, high - rubric.high), max(0.0, rubric.low - low)
    low, high = low - over + under, high - over + under
    return HeatScale(max(rubric.low, floor(low)), min(rubric.high, ceil(high)))


def heat_map(board: Leaderboard) -> HeatMap:
    """Return the heat map with the model of the best row first and prompts sorted by name."""
    cells: dict[tuple[str, str], list[LeaderboardRow]] = {}
    for row in board.rows:
        cells.setdefault((row.model, prompt_label(board, row)), []).append(row)
    return HeatMap(
        models=tuple(dict.fromkeys(model for model, _ in cells)),
        prompts=tuple(sorted({prompt for _, prompt in cells})),
        cells={cell: tuple(found) for cell, found in cells.items()},
    )


def slice_tables(board: Leaderboard) -> list[SliceTable]:
    found: dict[str, dict[str, int]] = {}
    for row in board.rows:
        for factor, levels in row.slices.items():
            for level, one in levels.items():
                most = found.setdefault(factor, {})
                most[level] = max(most.get(level, 0), one.scenarios)
    return [SliceTable(factor, dict(sorted(levels.items()))) for factor, levels in sorted(found.items())]
