"""The Open Bandit Pipeline's linear policies: one context for all actions, and a regression for each action."""

from benchmarks.parts.contenders.no_torch import stand_in_for_torch
from benchmarks.parts.contenders.turns import ALPHA, EPSILON, Step, Task, take_turns


def made(policy: str, task: Task) -> Step:
    stand_in_for_torch()
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
