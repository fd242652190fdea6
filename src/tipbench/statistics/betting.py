"""Deciding in rounds: for every row a bet that it is not a best one, which holds however often somebody looks.

Items come in random order. An item is one draw from the population: a scenario of a cluster that no other item is of,
with one candidate of every row. Before each item, the rival of a row is the row with the highest sum so far; the bet
is that the rival scores higher than the row. As long as the row is a best one, no strategy multiplies its stake by 20
with a probability of more than 1/20 (Ville's inequality), so a row whose account reaches 20 is out. That holds at
every look, for bounded scores of any distribution, and for any number of rows, because each row's hypothesis is
tested by itself: a wrong winner needs the best row to go out.

Two claims can be tested. "new": the row is not the best on new scenarios of this kind. "pool": its answers on the
scenarios of this pool are not the best on average; judging without replacement makes that cheaper to show.

It breaks if scenarios of one cluster count as several items, if the order is not random, or if scores change after a
look: then the account starts anew, and the k-th restart requires a wealth of 20 · 2^k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, stdtr

from tipbench.statistics.top_group import draw_means, expected_loss
from tipbench.statistics.units import Floats, Paired

Claim = Literal["new", "pool"]
CLAIMS: tuple[Claim, ...] = ("pool", "new")
WEALTH = 20.0  # that puts a row out: 1 / 0.05
BATCH = 4  # items between two looks
FEWEST_ITEMS = 8  # before an expected loss is good enough to stop at
_IS_POOL = np.array([claim == "pool" for claim in CLAIMS])
_STAKES = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.98])
_BOLDEST = 0.95  # share of an account that the adaptive bet may risk
_PRIOR_ITEMS = 4  # the adaptive bet starts as if it had seen so many items with a difference of about 0.2
_PRIOR_SQUARES = 0.16
_PARKED = 1 / 50  # of the loss that is good enough
_DRAWS = 4_000
_DIGITS = 9  # of sums
_RIVALS_IN_CACHE = 8  # whose squared differences to all rows are in memory; others are computed again


def wealth_for(restarts: int) -> float:
    """Return the wealth that puts a row out after so many restarts."""
    return WEALTH * 2.0**restarts


@dataclass(frozen=True)
class Rules:
    """How to decide."""

    claim: Claim  # whose account puts rows out
    pool: int  # items in the pool
    wealth: float = WEALTH
    good_enough: float = 0.0  # expected loss to stop at, as a share of the scale; 0: go on to proof
    batch: int = BATCH
    budget: int | None = None  # judgements; a batch that would exceed it is not taken


@dataclass(frozen=True)
class Decision:
    """The state of a decision after the items judged so far."""

    items: int  # that all accounts have taken
    judgements: int  # scores behind them
    wealth: dict[Claim, Floats]  # of each row's account
    out_after: tuple[int | None, ...]  # of each row: the number of items after which it was out
    parked: NDArray[np.bool_]  # rows that are hopeless enough not to be judged any more
    judged: tuple[int, ...]  # items that each row was judged on
    means: Floats  # of each row over these; NaN before the first
    leader: int
    runner_up: int | None
    expected_loss: float | None  # of picking the leader, as a share of the scale; None before the first look
    missing: tuple[tuple[int, int], ...]  # (item, row) to judge next; empty if nothing is left to judge
    winner: int | None  # the only row left: proven
    is_good_enough: bool

    @property
    def left(self) -> tuple[int, ...]:
        """The rows that may still win, parked ones included."""
        return tuple(row for row, out in enumerate(self.out_after) if out is None)

    @property
    def judged_rows(self) -> tuple[int, ...]:
        """The rows that further items are judged for."""
        return tuple(row for row in self.left if not self.parked[row])

    @property
    def is_over(self) -> bool:
        return self.winner is not None or self.is_good_enough


def decide(scores: Floats, rules: Rules) -> Decision:
    """Take the scores item by item, in their order, as far as they are complete.

    `scores` has items down and rows across, on a scale from 0 to 1; NaN is a score that is missing. The result
    depends on nothing but the scores in that order, so anybody can compute it again.
    """
    accounts = _Accounts(scores, rules)
    while accounts.take_batch():
        pass
    return accounts.decision()


class _Accounts:
    """The accounts of all rows, item by item.

    A parked row keeps its account as it is. When it returns, it is judged on what it missed, and its account takes
    these items as if it had never been parked: rivals and stakes are functions of earlier items only, so that every
    account is one fixed process, whichever moments of it are looked at.
    """

    def __init__(self, scores: Floats, rules: Rules) -> None:
        self._scores, self._rules = scores, rules
        self._rows = scores.shape[1]
        self._is_missing = np.isnan(scores).tolist()
        self._sums = _sums_before(scores)
        # Of a rival: the sums of its squared differences to every row.
        self._squares = lru_cache(_RIVALS_IN_CACHE)(lambda rival: _sums_before((scores[:, [rival]] - scores) ** 2))
        self._taken = 0  # items
        self._bets = _Bets(rules.pool, self._rows)
        self._out_after: list[int | None] = [None] * self._rows
        self._parked = np.zeros(self._rows, dtype=bool)
        self._judged_until = np.zeros(self._rows, dtype=int)  # items that each row's account has taken
        self._rivals = np.zeros(scores.shape, dtype=np.intp)  # of each row, on each item taken
        self._missing: tuple[tuple[int, int], ...] = ()
        self._good_enough = False

    # One batch

    def take_batch(self) -> bool:
        """Take the next batch; return whether there may be another. What is missing is noted."""
        judged = self._judged()
        if len(judged) < 2 or self._good_enough:
            return False
        items = range(self._taken, min(self._taken + self._rules.batch, len(self._scores), self._rules.pool))
        behind = [(item, row) for row in judged for item in range(self._judged_until[row], self._taken)]
        wanted = behind or [(item, row) for item in items for row in judged]
        if self._rules.budget is not None and int(self._judged_until.sum()) + len(wanted) > self._rules.budget:
            return False
        self._missing = tuple((item, row) for item, row in wanted if self._is_missing[item][row])
        if self._missing or not items:
            return False
        if behind:
            self._catch_up([row for row in judged if self._judged_until[row] < self._taken])
        else:
            self._take(items, judged)
            self._put_out(judged)
        self._look()
        return True

    def _left(self) -> list[int]:
        return [row for row in range(self._rows) if self._out_after[row] is None]

    def _judged(self) -> list[int]:
        return [row for row in self._left() if not self._parked[row]]

    def _take(self, items: range, judged: Sequence[int]) -> None:
        self._rivals[items] = self._choose_rivals(items, judged)
        self._bet(items, judged)
        self._taken = items.stop

    def _choose_rivals(self, items: range, judged: Sequence[int]) -> NDArray[np.intp]:
        """Return each row's rival on each item: the judged row with the highest sum before the item, for that row
        itself the second highest.

        Ties go to the row that comes first, so sums are rounded: equal ones must not differ by rounding errors.
        """
        sums = np.full((len(items), self._rows), -np.inf)
        sums[:, judged] = self._sums[items][:, judged].round(_DIGITS)
        each = np.arange(len(items))
        leaders = sums.argmax(axis=1)
        sums[each, leaders] = -np.inf
        rivals = np.repeat(leaders[:, np.newaxis], self._rows, axis=1)
        rivals[each, leaders] = sums.argmax(axis=1)
        return rivals

    def _bet(self, items: range, rows: Sequence[int]) -> None:
        """Let the accounts of these rows take these items, each against its rival on the item."""
        item, row = np.array(items)[:, np.newaxis], np.array(rows)
        rivals = self._rivals[item, row]
        squares = np.empty(rivals.shape)
        for rival in set(rivals.ravel().tolist()):
            squares = np.where(rivals == rival, self._squares(rival)[item, row], squares)
        past = _Past(item, self._sums[item, rivals] - self._sums[item, row], squares)
        self._bets.take(row, past, self._scores[item, rivals] - self._scores[item, row])
        self._judged_until[rows] = items.stop

    def _catch_up(self, rows: Sequence[int]) -> None:
        """Let the accounts of returned rows take the items that they missed."""
        for row in rows:
            self._bet(range(self._judged_until[row], self._taken), [row])

    def _put_out(self, judged: Sequence[int]) -> None:
        wealth = self._bets.wealth()[self._rules.claim]
        rich = [row for row in judged if wealth[row] >= self._rules.wealth]
        left = self._left()
        if len(rich) < len(left):  # a batch that would put everybody out puts nobody out
            for row in rich:
                self._out_after[row] = self._taken

    # A look after a batch

    def _look(self) -> None:
        if not self._rules.good_enough:
            return
        left = self._left()
        leader = self._leader(left)
        for row in left:
            if row != leader:
                self._parked[row] = self._worth(row, leader) < self._rules.good_enough * _PARKED
        self._parked[leader] = False
        self._good_enough = self._is_good_enough(left, leader)

    def _leader(self, rows: Sequence[int]) -> int:
        """Return the row with the highest sum among those that were judged on all items taken."""
        complete = [row for row in rows if self._judged_until[row] == self._taken]
        return complete[int(self._sums[self._taken, complete].round(_DIGITS).argmax())]

    def _worth(self, row: int, leader: int) -> float:
        """Return what the chance that the row is better than the leader is worth.

        On the items that both have; of a parked row also by the leader's later items, which may show that it was lucky.
        """
        items = int(min(self._judged_until[row], self._judged_until[leader]))
        own, its = self._scores[:items, row], self._scores[: self._judged_until[leader], leader]
        worth = expected_gain(own - its[:items])
        if items < len(its):
            error = np.sqrt(own.var() / len(own) + its.var() / len(its) + 1e-12)
            worth = max(worth, positive_part_of_t(float(own.mean() - its.mean()), float(error), items - 1))
        return worth

    def _is_good_enough(self, left: Sequence[int], leader: int) -> bool:
        if self._taken < min(FEWEST_ITEMS, self._rules.pool):
            return False
        others = [row for row in left if row != leader]
        if max((self._worth(row, leader) for row in others), default=0.0) > self._rules.good_enough:
            return False  # the expected loss can only be higher: no need to draw
        return self._expected_loss(left, leader) <= self._rules.good_enough

    def _expected_loss(self, left: Sequence[int], leader: int) -> float:
        """Return the expected loss among the rows judged so far, and what parked ones could still be worth."""
        complete = [row for row in left if self._judged_until[row] == self._taken]
        behind = sum(self._worth(row, leader) for row in left if self._judged_until[row] < self._taken)
        if len(complete) < 2:
            return behind
        units = np.ascontiguousarray(self._scores[: self._taken][:, complete].T)
        weights = np.full(self._taken, 1 / self._taken)
        return expected_loss(draw_means(Paired(units, weights), _DRAWS), complete.index(leader)) + behind

    def decision(self) -> Decision:
        left = self._left()
        leader = self._leader(left) if self._taken else 0
        others = [row for row in left if row != leader]
        return Decision(
            items=self._taken,
            judgements=int(self._judged_until.sum()),
            wealth=self._bets.wealth(),
            out_after=tuple(self._out_after),
            parked=self._parked.copy(),
            judged=tuple(int(count) for count in self._judged_until),
            means=np.array([self._mean(row) for row in range(self._rows)]),
            leader=leader,
            runner_up=max(others, key=lambda row: (self._mean(row), -row)) if self._taken and others else None,
            expected_loss=self._expected_loss(left, leader) if self._taken >= 2 else None,
            missing=self._missing,
            winner=left[0] if len(left) == 1 else None,
            is_good_enough=self._good_enough,
        )

    def _mean(self, row: int) -> float:
        items = int(self._judged_until[row])
        return float(self._scores[:items, row].mean()) if items else float("nan")


def _sums_before(values: Floats) -> Floats:
    """Return each column's sums over the items before the first, the second, … item, and over all of them.

    After a missing value they are NaN; nobody asks for these, since an account stops at what is missing.
    """
    return np.concatenate([np.zeros((1, values.shape[1])), values.cumsum(axis=0)])


class _Past(NamedTuple):
    """What a bet may know: of each item (down) and row (across), the differences to the rival on earlier items."""

    items: NDArray[np.intp]  # how many these are
    sums: Floats
    squares: Floats  # sums of their squares


class _Bets:
    """The accounts of all rows (last axis) for every claim (first axis).

    Half of an account is spread over fixed stakes, half follows the past differences.
    """

    def __init__(self, pool: int, rows: int) -> None:
        self._pool = pool
        self._fixed = np.ones((len(CLAIMS), len(_STAKES), rows))
        self._adaptive = np.ones((len(CLAIMS), rows))
        self._certain = np.zeros((len(CLAIMS), rows), dtype=bool)  # out, whatever the rest of the pool is like

    def wealth(self) -> dict[Claim, Floats]:
        half = (self._fixed.mean(axis=1) + self._adaptive) / 2
        return dict(zip(CLAIMS, np.where(self._certain, np.inf, half), strict=True))

    def take(self, rows: NDArray[np.intp], past: _Past, now: Floats) -> None:
        """Bet on items (down) for these rows (across): `now` is the row's difference to its rival on the item.

        Without replacement, the differences that are left must make up for those seen: at the edge of the hypothesis
        they sum up to minus the past sum, so that a bet is fair on the difference plus its share of that.
        """
        share = _IS_POOL[:, np.newaxis, np.newaxis] * past.sums / (self._pool - past.items)
        lowest = 1 - share  # a difference, corrected, is at least minus this
        self._certain[:, rows] |= (lowest < -(10.0**-_DIGITS)).any(axis=1)  # not by a rounding error
        lowest = np.maximum(lowest, 1e-12)
        mean = past.sums / (past.items + _PRIOR_ITEMS)
        variance = (past.squares + _PRIOR_SQUARES) / (past.items + _PRIOR_ITEMS) - mean**2
        expected = mean + share
        stake = np.clip(expected / (variance + expected**2), 0, _BOLDEST / lowest)
        corrected = now + share
        self._adaptive[:, rows] *= np.maximum(1 + stake * corrected, 0).prod(axis=1)
        per_stake = (corrected / np.maximum(1, lowest))[:, np.newaxis]
        self._fixed[:, :, rows] *= np.maximum(1 + _STAKES[:, np.newaxis, np.newaxis] * per_stake, 0).prod(axis=2)


def judgements_to_decide(state: Decision, rules: Rules) -> int | None:
    """Estimate the judgements that are still needed, if rows stay as far apart and scatter as much as so far.

    None if nothing was judged yet, or if that would take more than the pool has.
    """
    rows = state.judged_rows
    if state.items < 2 or len(rows) < 2:
        return None
    if rules.good_enough and state.expected_loss is not None:
        # The expected loss falls about as one over the root of the items.
        needed = state.items * (state.expected_loss / rules.good_enough) ** 2 - state.items
        items = int(np.ceil(max(needed, 1) / rules.batch)) * rules.batch
        return None if state.items + items > rules.pool else items * len(rows)
    total = 0
    for row in rows:
        wealth = float(state.wealth[rules.claim][row])
        if row == state.leader or wealth >= rules.wealth:
            continue
        growth = np.log(max(wealth, 1.001)) / state.items
        items = (np.log(rules.wealth) - np.log(max(wealth, 1.0))) / growth
        if state.items + items > rules.pool:
            return None
        total += int(np.ceil(items))
    return max(total, rules.batch * len(rows)) + (total // max(len(rows) - 1, 1))  # the leader is judged as well


def expected_gain(differences: Floats) -> float:
    """Return how much the mean difference is above 0 on average, counting what is below as 0.

    By a flat prior on mean and log variance, with a few differences of about 0.2 beside those seen, so that some equal
    ones at the beginning don't pass for certainty.
    """
    n = len(differences)
    if n < 2:
        return float("inf")
    mean = float(differences.mean())
    squares = float(((differences - mean) ** 2).sum())
    error = float(np.sqrt((squares + _PRIOR_SQUARES / _PRIOR_ITEMS) / (n * n)))
    return positive_part_of_t(mean, error, n - 1)


def positive_part_of_t(mean: float, scale: float, freedom: int) -> float:
    """Return the mean of the positive part of mean + scale · T, where T has Student's t distribution."""
    if freedom < 2:
        return float("inf")
    z = mean / scale
    log_density = (
        gammaln((freedom + 1) / 2)
        - gammaln(freedom / 2)
        - 0.5 * np.log(freedom * np.pi)
        - (freedom + 1) / 2 * np.log1p(z * z / freedom)
    )
    tail = scale * (freedom + z * z) / (freedom - 1) * np.exp(log_density)
    return float(mean * stdtr(freedom, z) + tail)
