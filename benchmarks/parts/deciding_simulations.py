"""Simulated decisions in rounds: what they take, how often they are wrong, and users who look after every item."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from benchmarks.parts.contest import RIVAL, ROWS, SHAPES, SPAN, Contest, random_for
from benchmarks.parts.score_worlds import Floats
from tipbench.statistics.betting import Claim, Decision, Rules, decide, wealth_for

_EQUAL = 1e-9  # points
_RESTARTS = 2


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    world: str
    shape: str  # of the twelve rows, or a name for others
    claim: Claim
    items: int
    good_enough: float = 0.0  # points

    def __str__(self) -> str:
        stop = f", stopped at {self.good_enough:g}" if self.good_enough else ""
        return f"{self.world}, {self.shape}, {self.claim} {self.items}{stop}"


@dataclass(frozen=True)
class Figures:
    """What came of the runs of a setting."""

    runs: int
    decided: float
    wrong: int
    wrong_bound: float
    median: float  # judgements; infinite if less than half of the runs were decided
    quantile_80: float
    true_loss: float  # points
    by_means: float  # share in which the row with the highest mean after as many judgements is not the best


@dataclass(frozen=True)
class Users:
    """How many users with a claim in a world were told a wrong winner."""

    world: str
    claim: Claim
    users: int
    until_named: int  # of those who go on until a winner is named
    until_tired: int  # of those who stop at some moment
    restarting: int  # of those who stop at some moment, and start over twice


def upper_bound(wrong: int, runs: int) -> float:
    """Return the upper end of the two-sided 95 % Clopper–Pearson interval of a share."""
    return 1.0 if wrong == runs else float(beta.ppf(0.975, wrong + 1, runs - wrong))


def _truth(claim: Claim, scores: Floats, behind: Floats) -> Floats:
    """Return the points of each row that the claim is about: on this pool, or on new scenarios."""
    return scores.mean(axis=0) * SPAN if claim == "pool" else -behind


def _loss(truth: Floats, row: int) -> float:
    return float(truth.max() - truth[row])


def measure(setting: Setting, runs: int, seed: int) -> Figures:
    """Simulate decisions; in each, rows are in another order."""
    random = random_for(seed, setting)
    contest = Contest(setting.world, SHAPES[setting.shape])
    rules = Rules(setting.claim, setting.items, good_enough=setting.good_enough / SPAN)
    decided, wrong, by_means = (np.zeros(runs, dtype=bool) for _ in range(3))
    judgements, losses = np.zeros(runs), np.zeros(runs)
    for run in range(runs):
        order = random.permutation(ROWS)
        scores = contest.items(random, order, setting.items)
        state = decide(scores, rules)
        truth = _truth(setting.claim, scores, contest.behind[order])
        losses[run] = _loss(truth, state.leader)
        decided[run] = state.is_over
        wrong[run] = _is_wrong(state, truth)
        judgements[run] = state.judgements
        highest = int(scores[: max(1, state.judgements // ROWS)].mean(axis=0).argmax())
        by_means[run] = _loss(truth, highest) > _EQUAL
    taken = np.where(decided, judgements, np.inf)
    return Figures(
        runs=runs,
        decided=float(decided.mean()),
        wrong=int(wrong.sum()),
        wrong_bound=upper_bound(int(wrong.sum()), runs),
        median=float(np.quantile(taken, 0.5, method="higher")),
        quantile_80=float(np.quantile(taken, 0.8, method="higher")),
        true_loss=float(losses.mean()),
        by_means=float(by_means.mean()),
    )


def _is_wrong(state: Decision, truth: Floats) -> bool:
    return state.winner is not None and _loss(truth, state.winner) > _EQUAL


# Users who look after every item


def look_always(setting: Setting, users: int, seed: int) -> Users:
    """Simulate users who look after every item; the second best of two rows, or of twelve, is 0.15 behind.

    A user who starts over has a third of the items judged anew, and has been told a wrong winner if any of the
    three starts named one.
    """
    random, claim = random_for(seed, setting), setting.claim
    contests = [Contest(setting.world, np.array([0.0, RIVAL] + [1.0] * (rows - 2))) for rows in (2, ROWS)]
    until_named = until_tired = restarting = 0
    for user in range(users):
        contest = contests[user % 2]
        order = random.permutation(len(contest.behind))
        scores = contest.items(random, order, setting.items)
        named, told = _look(scores, claim, contest.behind[order], random, restarts=0)
        until_named += named
        until_tired += told
        for restarts in range(1, _RESTARTS + 1):
            anew = random.random(setting.items) < 1 / 3
            scores[anew] = contest.items(random, order, setting.items)[anew]
            told |= _look(scores, claim, contest.behind[order], random, restarts)[1]
        restarting += told
    return Users(setting.world, claim, users, until_named, until_tired, restarting)


def _look(
    scores: Floats, claim: Claim, behind: Floats, random: np.random.Generator, restarts: int
) -> tuple[bool, bool]:
    """Return whether a wrong winner is named ever, and before the user is tired; in the last start nobody is."""
    state = decide(scores, Rules(claim, len(scores), wealth_for(restarts), batch=1))
    tired = len(scores) if restarts == _RESTARTS else int(random.integers(20, len(scores)))
    wrong = _is_wrong(state, _truth(claim, scores, behind))
    return wrong, wrong and state.items <= tired
