"""Vowpal Wabbit by vowpal-wabbit-next: its contextual bandits with features of each action, one model for all."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from vowpal_wabbit_next import CBLabel, Example, TextFormatParser, Workspace

from benchmarks.parts.contenders.turns import EPSILON, Step, Task, take_turns

COMMON = ["--cb_explore_adf", "--noconstant", "--quiet"]
EXPLORING = {"epsilon": ["--epsilon", str(EPSILON)], "squarecb": ["--squarecb"]}


def made(policy: str, task: Task) -> Step:
    exploring, _, source = policy.partition("-from-")
    workspace = Workspace([*COMMON, *EXPLORING[exploring]])
    examples_of = (_from_text if source == "text" else _from_numbers)(workspace, task)
    drawn = random.Random(7)

    def step(number: int) -> int:
        examples = examples_of(number)
        likely = workspace.predict_one(examples)
        place, propensity = drawn.choices(likely, [share for _, share in likely])[0]
        examples[place].set_label(CBLabel(label=(-task.rewards[number][place], propensity)))
        workspace.learn_one(examples)
        return int(place)

    return step


def _from_numbers(workspace: Any, task: Task) -> Callable[[int], list[Any]]:
    """The quickest way in that it has: no text is made and read again."""
    names = [f"f{dimension}" for dimension in range(task.dimensions)]
    indices = [workspace.get_index_for_scalar_feature(name, namespace_name="a") for name in names]
    where = np.array(indices, dtype=np.uint64)
    features = task.features.astype(np.float32)

    def examples_of(number: int) -> list[Any]:
        examples = []
        for row in features[number]:
            example = Example()
            example["a"].push_many_features(where, row)
            example.set_label(CBLabel())
            examples.append(example)
        return examples

    return examples_of


def _from_text(workspace: Any, task: Task) -> Callable[[int], list[Any]]:
    """The way that its tutorials take."""
    parser = TextFormatParser(workspace)

    def examples_of(number: int) -> list[Any]:
        rows = task.features[number].tolist()
        return [
            parser.parse_line("|a " + " ".join(f"f{at}:{value:.6g}" for at, value in enumerate(row))) for row in rows
        ]

    return examples_of


if __name__ == "__main__":
    take_turns(made)
