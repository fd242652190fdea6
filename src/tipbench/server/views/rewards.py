"""What users did with the texts of an experiment's rows, beside what judges said about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.recommender.log.reward_statistics import RewardStatistics
from tipbench.statistics.bounded import Interval, bounded_interval, inverse_propensity_mean

LEAST_EFFECTIVE = 200  # below, a weighted mean is mostly chance, and is not shown
_SCALE = Interval(-1.0, 1.0)
_Places = NDArray[np.intp]


@dataclass(frozen=True)
class Weighted:
    """By how unlikely each choice was; of rewards whose decisions left something to chance."""

    rewards: int
    effective: float
    mean: float | None  # None: the effective sample is too small


@dataclass(frozen=True)
class EarnedRow:
    """A row of the leaderboard that was served."""

    rank: int
    row: LeaderboardRow
    served: int
    users: int
    rewarded: int
    completed: int  # rewards above 0
    mean: float | None  # of the rewards; None: there are none
    interval: Interval | None  # 95 %, users taken for independent and the rewards of one for as alike as they look
    weighted: Weighted

    @property
    def completed_share(self) -> float | None:
        return self.completed / self.rewarded if self.rewarded else None


@dataclass(frozen=True)
class Rewards:
    """The served rows, in the leaderboard's order, and what belongs to none of them."""

    board: Leaderboard
    rows: tuple[EarnedRow, ...]
    users: int  # who were served any of them
    elsewhere: int  # served, of runs that don't count in this experiment: another's, set aside, or gone
    elsewhere_runs: int
    without_source: int  # served, and nothing says from which run
    rewards_alone: int  # whose decisions are not in the log

    @property
    def served(self) -> int:
        return sum(row.served for row in self.rows)

    @property
    def rewarded(self) -> int:
        return sum(row.rewarded for row in self.rows)


def rewards_of(board: Leaderboard, earnings: RewardStatistics) -> Rewards:
    row_of_source = _rows_of_sources(board, earnings)
    known = earnings.source >= 0
    rows = np.full(len(earnings.source), -1, dtype=np.int64)
    rows[known] = row_of_source[earnings.source[known]]
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(board.rows) + 1))
    served = [order[start:end] for start, end in pairwise(starts)]
    elsewhere = known & (rows < 0)
    return Rewards(
        board=board,
        rows=tuple(
            _earned(rank, row, earnings, places)
            for rank, (row, places) in enumerate(zip(board.rows, served, strict=True), 1)
            if len(places)
        ),
        users=len(np.unique(earnings.user[rows >= 0])),
        elsewhere=int(elsewhere.sum()),
        elsewhere_runs=len({earnings.sources[number].run_id for number in np.unique(earnings.source[elsewhere])}),
        without_source=earnings.without_source,
        rewards_alone=earnings.rewards_alone,
    )


def _rows_of_sources(board: Leaderboard, earnings: RewardStatistics) -> NDArray[np.int64]:
    """The row of each source; -1 where it names no run of this experiment, or not by its cell."""
    cells: Mapping[str, tuple[int, str]] = {
        cell.run_id: (number, cell.key) for number, row in enumerate(board.grid.rows) for cell in row.cells
    }
    found = []
    for source in earnings.sources:
        number, key = cells.get(source.run_id, (-1, ""))
        found.append(number if key.startswith(source.cell) else -1)
    return np.array(found, dtype=np.int64)


def _earned(rank: int, row: LeaderboardRow, earnings: RewardStatistics, served: _Places) -> EarnedRow:
    rewarded = served[~np.isnan(earnings.reward[served])]
    rewards = earnings.reward[rewarded]
    return EarnedRow(
        rank=rank,
        row=row,
        served=len(served),
        users=len(np.unique(earnings.user[served])),
        rewarded=len(rewards),
        completed=int((rewards > 0).sum()),
        mean=float(rewards.mean()) if len(rewards) else None,
        interval=bounded_interval(rewards, *_SCALE, earnings.user[rewarded].tolist()) if len(rewards) else None,
        weighted=_weighted(earnings, rewarded),
    )


def _weighted(earnings: RewardStatistics, rewarded: _Places) -> Weighted:
    by_chance = rewarded[~np.isnan(earnings.propensity[rewarded])]
    if not len(by_chance):
        return Weighted(0, 0.0, None)
    found = inverse_propensity_mean(earnings.reward[by_chance], earnings.propensity[by_chance])
    return Weighted(len(by_chance), found.effective, found.mean if found.effective >= LEAST_EFFECTIVE else None)
