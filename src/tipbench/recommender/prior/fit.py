"""Fit a population prior to the decision log.

Everything comes from the log, in the order of time, so the same log gives the same prior to the byte. Nothing of a user
from before a reset is used.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tipbench.core.errors import InvalidInput
from tipbench.core.text import counted
from tipbench.recommender.features.v3 import DENSE, NAMES, V3, fill_in
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.policies.posterior import WeightedSums
from tipbench.recommender.policies.ridge import upper_triangle
from tipbench.recommender.prior.em import UserSums, fit_users
from tipbench.recommender.replay.evaluation import StatesInTime
from tipbench.recommender.replay.rounds import Round, Rounds, load_rounds

FEWEST_USERS = 100
_SHRINKAGE = 10.0  # rewards of the mean that every tip starts with
_POLICY = SERVED["ucb/v3"]


def fit_prior(folder: Path, fewest_users: int = FEWEST_USERS) -> dict[str, Any]:
    """Fit a prior to the decision log in a folder; return the content of its record.

    Raises InvalidInput if the log has rewards of fewer users.
    """
    rounds = load_rounds(folder, for_weights=False)
    users = len(np.unique(rounds.users))
    if users < max(1, fewest_users):
        raise InvalidInput(
            f"the log in {folder} has rewards of {counted(users, 'user')}, and a prior takes {max(1, fewest_users)}; "
            "serve more users first, or ask for fewer with --min-users"
        )
    return fit_rounds(rounds)


def fit_rounds(rounds: Rounds) -> dict[str, Any]:
    """Fit a prior to rounds; return the content of its record."""
    tips = TipRewards(rounds)
    fitted = fit_users(list(_user_sums(rounds, tips)))
    return {
        "schema": 1,
        "feature_version": V3.version,
        "users": len(np.unique(rounds.users)),
        "rewards": len(rounds),
        "first_ms": int(rounds.decided_ms.min()),
        "last_ms": int(rounds.decided_ms.max()),
        "mean_reward": tips.mean,
        "mean": dict(zip(NAMES, fitted.mean.tolist(), strict=False)),
        "precision": fitted.precision[upper_triangle(DENSE)].tolist(),
        "intercept_precision": fitted.intercept_precision,
        "noise": fitted.noise,
        "tips": tips.shrunk(),
    }


class TipRewards:
    """What each tip earned over all users, as a difference from the mean reward, shrunk towards 0."""

    def __init__(self, rounds: Rounds) -> None:
        self._of_tip: dict[str, _Sum] = defaultdict(_Sum)
        self._of_user: dict[tuple[int, str], _Sum] = defaultdict(_Sum)
        total = _Sum()
        for one in _all(rounds):
            tip = one.request.candidates[one.chosen].id
            for sums in (total, self._of_tip[tip], self._of_user[one.user, tip]):
                sums.add(one.reward)
        self.mean = total.total / max(1, total.count)

    def shrunk(self) -> dict[str, float]:
        return {tip: self._shrunk(sums.total, sums.count) for tip, sums in sorted(self._of_tip.items())}

    def without(self, user: int, tip: str) -> float:
        """Return what a tip earned with all other users: a user's own reward must not predict itself."""
        all_users, own = self._of_tip[tip], self._of_user[user, tip]
        return self._shrunk(all_users.total - own.total, all_users.count - own.count)

    def _shrunk(self, total: float, count: int) -> float:
        return (total - count * self.mean) / (count + _SHRINKAGE)


class _Sum:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, reward: float) -> None:
        self.total += reward
        self.count += 1


def _user_sums(rounds: Rounds, tips: TipRewards) -> Iterator[UserSums]:
    """Yield the sums that each user's state would hold, in the order of user ids."""
    states = StatesInTime(_POLICY, rounds.impressions)
    found: dict[str, UserSums] = {}
    for one in _all(rounds):
        state = states.at(one)
        assert isinstance(state, WeightedSums)
        chosen = one.request.candidates[one.chosen]
        request = one.request.model_copy(update={"candidates": (chosen,)})
        rows = V3.rows(request)
        fill_in(rows, request, state.shown, {chosen.id: tips.without(one.user, chosen.id)}, one.at_ms)
        user = found.setdefault(request.user_id, UserSums(state))
        user.learn(np.array(rows[0]), one.reward, one.at_ms)
    return (found[user_id] for user_id in sorted(found))


def _all(rounds: Rounds) -> Iterator[Round]:
    return rounds.read(np.ones(len(rounds), dtype=np.bool_))
