"""Lives in the Open Bandit Pipeline's simulator, with its LinEpsilonGreedy: a regression an action.

It has two ways. `run_bandit_simulation` goes through logged rounds and learns only where the policy would have chosen
what was logged, one round in ten here. `calc_ground_truth_policy_value` learns in every round, as ours does. Both are
timed on contexts and rewards that are there already, the second also with those of obp's own synthetic world.
"""

import os

os.environ["TQDM_DISABLE"] = "1"  # its progress bar

from typing import Any

import numpy as np

from benchmarks.parts.contenders.lives import ACTIONS, DIMENSIONS, STEPS, live_in_turns
from benchmarks.parts.contenders.no_torch import stand_in_for_torch
from benchmarks.parts.contenders.turns import EPSILON

stand_in_for_torch()

from obp.dataset import SyntheticBanditDataset, logistic_reward_function  # noqa: E402
from obp.policy import LinEpsilonGreedy  # noqa: E402
from obp.simulator import calc_ground_truth_policy_value, run_bandit_simulation  # noqa: E402


def live(way: str, seed: int) -> None:
    policy = LinEpsilonGreedy(dim=DIMENSIONS, n_actions=ACTIONS, epsilon=EPSILON, random_state=seed)
    if way == "own-world":
        world = SyntheticBanditDataset(ACTIONS, DIMENSIONS, reward_function=logistic_reward_function, random_state=seed)
        feedback = {**world.obtain_batch_bandit_feedback(STEPS), "position": np.zeros(STEPS, dtype=int)}
        calc_ground_truth_policy_value(feedback, world.sample_reward, policy, n_sim=1)
    elif way == "always":
        rewards = iter([0, 1] * STEPS)
        calc_ground_truth_policy_value(_ready(seed), lambda *_: next(rewards), policy, n_sim=1)
    else:
        run_bandit_simulation(bandit_feedback=_ready(seed), policy=policy)


def _ready(seed: int) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    return {
        "n_rounds": STEPS,
        "context": chance.normal(size=(STEPS, DIMENSIONS)),
        "action": np.concatenate([np.arange(ACTIONS), chance.integers(0, ACTIONS, STEPS - ACTIONS)]),
        "reward": chance.integers(0, 2, STEPS),
        "expected_reward": chance.random((STEPS, ACTIONS)),
        "position": np.zeros(STEPS, dtype=int),
        "pscore": np.full(STEPS, 1 / ACTIONS),
    }


if __name__ == "__main__":
    live_in_turns(live)
