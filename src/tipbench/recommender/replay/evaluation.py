"""The candidate, as it is after the first part, is put to the decisions of the rest.

It learns no more there. What it would go on to learn from are the choices of another policy, so that what comes out
would belong to no policy that anybody can serve; frozen, every decision is a clean question to one known policy. The
policy that was there did go on learning, which is to the candidate's disadvantage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.policies.chance import EventRng
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.replay.estimators import Estimate, Weights, doubly_robust, estimate, ips, snips, weights
from tipbench.recommender.replay.rounds import Rounds
from tipbench.recommender.replay.training import Trained, first_part, trained

IPS, SNIPS, DR = "IPS", "SNIPS", "DR"


@dataclass(frozen=True)
class Columns:
    """A value for each decision that the candidate is evaluated on."""

    users: NDArray[np.intp]
    rewards: Floats
    logged: Floats  # propensity of the logged choice, to the policy that made it
    asked: Floats  # the same to the candidate
    expected_of_choice: Floats
    expected_of_asked: Floats


class Estimated:
    """What the candidate would have earned a decision, and how much more than what was served, by each estimator."""

    def __init__(self, columns: Columns) -> None:
        self.weights: Weights = weights(columns.logged, columns.asked)
        terms = {
            IPS: ips(columns.rewards, self.weights),
            SNIPS: snips(columns.rewards, self.weights),
            DR: doubly_robust(columns.rewards, self.weights, columns.expected_of_choice, columns.expected_of_asked),
        }
        self.served: Estimate = estimate(columns.rewards, columns.users)
        self.values: Mapping[str, Estimate] = {name: estimate(of, columns.users) for name, of in terms.items()}
        self.gains: Mapping[str, Estimate] = {
            name: estimate(of - columns.rewards, columns.users) for name, of in terms.items()
        }


@dataclass(frozen=True)
class Evaluation:
    rounds: Rounds
    learned: int  # decisions that the candidate was trained on
    columns: Columns
    told: int  # evaluated decisions whose request says what the user did with some category


def evaluated(rounds: Rounds, candidate: Policy[Any], share: float) -> Evaluation:
    """`share` is the part of each user's decisions that the candidate learns from."""
    learned = first_part(rounds, share)
    columns, told = _columns(rounds, candidate, trained(rounds, candidate, learned), ~learned)
    return Evaluation(rounds, int(learned.sum()), columns, told)


def _columns(rounds: Rounds, candidate: Policy[Any], known: Trained, rest: NDArray[np.bool_]) -> tuple[Columns, int]:
    """And how many of the decisions came with a profile by category."""
    found = np.empty((5, len(rounds)))
    nothing_known = candidate.new_state()
    told = 0
    for one in rounds.read(rest):
        profile = one.request.profile_features
        told += profile is not None and bool(profile.categories)
        state = known.states.get(one.user, nothing_known)
        generator = EventRng(candidate.name, one.request.user_id, one.request.event_id)
        choice = candidate.choose(state, one.request, generator)
        same = candidate.features is known.model.features
        seen = choice.features if same else known.model.features.matrix(one.request)
        expected = known.model.expected(one.user, seen)
        asked = float(choice.propensities[one.chosen])
        of_asked = float(choice.propensities @ expected)
        found[:, one.place] = one.reward, one.propensity, asked, float(expected[one.chosen]), of_asked
    return Columns(rounds.users[rest], *found[:, rest]), told
