"""The Open Bandit Pipeline's linear policies: one context for all actions, and a regression for each action.

Its package imports torch for policies that are not measured here. Torch is 200 MB and more, so an empty module stands
in for it; everything that is measured is obp's own code on real numpy and scikit-learn.
"""

import sys

from benchmarks.parts.contenders.turns import ALPHA, EPSILON, Step, Task, take_turns


class _AnyName(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _NoTorch(metaclass=_AnyName):
    """Has every name, and does nothing."""


def made(policy: str, task: Task) -> Step:
    sys.modules.update(dict.fromkeys(("torch", "torch.nn", "torch.nn.functional", "torch.optim"), _NoTorch))  # type: ignore[arg-type]
    from obp.policy import LinEpsilonGreedy, LinUCB

    kind, epsilon = {"egreedy": (LinEpsilonGreedy, EPSILON), "linucb": (LinUCB, ALPHA)}[policy]
    learner = kind(dim=task.dimensions, n_actions=task.candidates, epsilon=epsilon, random_state=7)
    contexts = task.features.mean(axis=1, keepdims=True)

    def step(number: int) -> int:
        context = contexts[number]
        place = int(learner.select_action(context)[0])
        learner.update_params(place, task.rewards[number][place], context)
        return place

    return step


if __name__ == "__main__":
    take_turns(made)
