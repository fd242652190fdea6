"""The Open Bandit Pipeline's policies serve users of our simulator: an action for each category, and for each action a
regression on the moment's context.

It knows no features of candidates and no candidates that come and go: its ranking of the categories decides, and among
the offered tips of one category chance does. Its logistic policies learn whether the tip was completed.
"""

import random
import sys
from typing import Any

import numpy as np

from benchmarks.parts.contenders.asked import Offered, answer
from benchmarks.parts.contenders.no_torch import stand_in_for_torch

COMPLETED = 0.5  # and more


class OpenBanditPipeline:
    def __init__(self, policy: str) -> None:
        stand_in_for_torch()
        import obp.policy

        self._kind: Any = getattr(obp.policy, policy)
        self._binary = policy.startswith("Logistic")
        self._exploring = {"epsilon": 0.05} if "Epsilon" in policy else {"epsilon": 1.0} if "UCB" in policy else {}
        self._drawn = random.Random(7)
        self._users = 0

    def begin(self) -> None:
        self._users += 1
        self._policy: Any = None
        self._pending: dict[str, tuple[int, Any]] = {}

    def choose(self, event: str, offered: Offered) -> int:
        context = np.array([offered.context])
        if self._policy is None:
            categories = len(offered.context) - 3
            self._policy = self._kind(
                dim=len(offered.context),
                n_actions=categories,
                len_list=categories,
                random_state=self._users,
                **self._exploring,
            )
        for category in self._policy.select_action(context).tolist():
            positions = [position for position, one in enumerate(offered.categories) if one == category]
            if positions:
                self._pending[event] = category, context
                return self._drawn.choice(positions)
        raise ValueError("no category is offered")

    def learn(self, event: str, reward: float) -> None:
        category, context = self._pending.pop(event)
        self._policy.update_params(category, float(reward > COMPLETED) if self._binary else reward, context)

    def keep(self) -> None:
        """Nothing: it has no model that could be begun with."""


if __name__ == "__main__":
    answer(OpenBanditPipeline(sys.argv[1]))
