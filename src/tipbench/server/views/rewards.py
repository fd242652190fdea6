"""What users did with the texts of a leaderboard's rows, beside what judges said about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.recommender.log.reward_statistics import RewardStatistics
from tipbench.statistics.bounded import bounded_interval, inverse_propensity_mean
from tipbench.statistics.interval import Interval

LEAST_EFFECTIVE = 200  # below this, a weighted mean is mostly noise and is not shown
_SCALE = Interval(-1.0, 1.0)
_Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Weighted:
    """Rewards weighted by how unlikely each choice was; only those whose decisions were random to some degree."""

    rewards: int
    effective: float
    mean: float | None  # None: the effective sample is too small


@dataclass(frozen=True)
class ServedRow:
    """A row of the leaderboard that was served."""

    rank: int
    row: LeaderboardRow
    served: int
    users: int
    rewarded: int
    completed: int  # rewards above 0
    mean: float | None  # of the rewards; None if there are none
    interval: Interval | None  # 95 %; users are independent, one user's rewards as correlated as observed
    weighted: Weighted

    @property
    def completed_share(self) -> float | None:
        return self.completed / self.rewarded if self.rewarded else None


@dataclass(frozen=True)
class Rewards:
    """The served rows, in the leaderboard's order, and counts of what belongs to none of them."""

    board: Leaderboard
    rows: tuple[ServedRow, ...]
    users: int  # that were served at least one of the rows
    elsewhere: int  # served from runs that don't count here: another experiment's, set aside or deleted
    elsewhere_runs: int
    without_source: int  # served without a source run
    rewards_without_decision: int  # rewards whose decisions are not in the log

    @property
    def served(self) -> int:
        return sum(row.served for row in self.rows)

    @property
    def rewarded(self) -> int:
        return sum(row.rewarded for row in self.rows)


def rewards_of(board: Leaderboard, statistics: RewardStatistics) -> Rewards:
    row_of_source = _rows_of_sources(board, statistics)
    known = statistics.source >= 0
    rows = np.full(len(statistics.source), -1, dtype=np.int64)
    rows[known] = row_of_source[statistics.source[known]]
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(board.rows) + 1))
    served = [order[start:end] for start, end in pairwise(starts)]
    elsewhere = known & (rows < 0)
    return Rewards(
        board=board,
        rows=tuple(
            _served_row(rank, row, statistics, indices)
            for rank, (row, indices) in enumerate(zip(board.rows, served, strict=True), 1)
            if len(indices)
        ),
        users=len(np.unique(statistics.user[rows >= 0])),
        elsewhere=int(elsewhere.sum()),
        elsewhere_runs=len({statistics.sources[number].run_id for number in np.unique(statistics.source[elsewhere])}),
        without_source=statistics.without_source,
        rewards_without_decision=statistics.rewards_without_decision,
    )


def _rows_of_sources(board: Leaderboard, statistics: RewardStatistics) -> NDArray[np.int64]:
    """Return the row index of each source; -1 if it names no run of this experiment, or the wrong cell."""
    cells: Mapping[str, tuple[int, str]] = {
        cell.run_id: (number, cell.key) for number, row in enumerate(board.grid.rows) for cell in row.cells
    }
    found = []
    for source in statistics.sources:
        number, key = cells.get(source.run_id, (-1, ""))
        found.append(number if key.startswith(source.cell) else -1)
    return np.array(found, dtype=np.int64)


def _served_row(rank: int, row: LeaderboardRow, statistics: RewardStatistics, served: _Indices) -> ServedRow:
    rewarded = served[~np.isnan(statistics.reward[served])]
    rewards = statistics.reward[rewarded]
    return ServedRow(
        rank=rank,
        row=row,
        served=len(served),
        users=len(np.unique(statistics.user[served])),
        rewarded=len(rewards),
        completed=int((rewards > 0).sum()),
        mean=float(rewards.mean()) if len(rewards) else None,
        interval=bounded_interval(rewards, *_SCALE, statistics.user[rewarded].tolist()) if len(rewards) else None,
        weighted=_weighted(statistics, rewarded),
    )


def _weighted(statistics: RewardStatistics, rewarded: _Indices) -> Weighted:
    weightable = rewarded[~np.isnan(statistics.propensity[rewarded])]
    if not len(weightable):
        return Weighted(0, 0.0, None)
    found = inverse_propensity_mean(statistics.reward[weightable], statistics.propensity[weightable])
    return Weighted(len(weightable), found.effective, found.mean if found.effective >= LEAST_EFFECTIVE else None)
