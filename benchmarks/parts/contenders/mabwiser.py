"""MABWiser's linear policies, in both ways that fit: an arm a candidate, and one arm with candidates as contexts."""

import random

from mabwiser.mab import MAB, LearningPolicy

from benchmarks.parts.contenders.turns import ALPHA, EPSILON, Step, Task, take_turns


def made(policy: str, task: Task) -> Step:
    if policy == "egreedy-one-arm":
        return _one_arm(task)
    kinds = {"egreedy": LearningPolicy.LinGreedy(epsilon=EPSILON), "linucb": LearningPolicy.LinUCB(alpha=ALPHA)}
    return _an_arm_each(kinds[policy], task)


def _an_arm_each(kind: LearningPolicy, task: Task) -> Step:
    """What it is made for: one context for all arms, and a regression for each arm."""
    contexts = task.features.mean(axis=1, keepdims=True)
    arms = list(range(task.candidates))
    learner = MAB(arms, kind, seed=7)
    learner.fit(arms, [0.0] * len(arms), contexts[: len(arms), 0])

    def step(number: int) -> int:
        context = contexts[number]
        place = int(learner.predict(context))
        learner.partial_fit([place], [task.rewards[number][place]], context)
        return place

    return step


def _one_arm(task: Task) -> Step:
    """The same regression as ours: candidates are contexts of a single arm, and we draw."""
    learner = MAB([0], LearningPolicy.LinGreedy(epsilon=0.0), seed=7)
    learner.fit([0], [0.0], task.features[0, :1])
    drawn = random.Random(7)
    places = range(task.candidates)

    def step(number: int) -> int:
        rows = task.features[number]
        expected = [by_arm[0] for by_arm in learner.predict_expectations(rows)]
        place = drawn.choice(places) if drawn.random() < EPSILON else expected.index(max(expected))
        learner.partial_fit([0], [task.rewards[number][place]], rows[place : place + 1])
        return place

    return step


if __name__ == "__main__":
    take_turns(made)
