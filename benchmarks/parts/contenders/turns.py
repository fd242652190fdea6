"""What every contender does: the same decisions, as many as it is told, and the time that they took.

It reads a number from its standard input and answers with a line, so that contenders can take turns.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EPSILON = 0.05  # what ours comes down to; all explore alike
ALPHA = 1.0
Step = Callable[[int], int]  # the number of a decision → the place of what was chosen, after its reward was learned


class Task(NamedTuple):
    features: NDArray[np.float64]  # decision × candidate × dimension
    rewards: list[list[float]]  # decision × candidate: what it would earn
    requests: Path  # what the features were made of, a line a decision

    @property
    def decisions(self) -> int:
        return len(self.rewards)

    @property
    def candidates(self) -> int:
        return int(self.features.shape[1])

    @property
    def dimensions(self) -> int:
        return int(self.features.shape[2])

    def write(self, folder: Path) -> None:
        np.savez(folder / "task.npz", features=self.features, rewards=np.array(self.rewards))


def read_task(folder: Path) -> Task:
    with np.load(folder / "task.npz") as arrays:
        return Task(arrays["features"], arrays["rewards"].tolist(), folder / "requests.jsonl")


def take_turns(made: Callable[[str, Task], Step]) -> None:
    """The body of a contender's process; its arguments are a policy's name and the folder of the task."""
    policy, folder = sys.argv[1:]
    task = read_task(Path(folder))
    step = made(policy, task)
    number = 0
    for line in sys.stdin:
        count = int(line)
        earned = 0.0
        started = time.perf_counter()
        for _ in range(count):
            earned += task.rewards[number][step(number)]
            number = (number + 1) % task.decisions
        seconds = time.perf_counter() - started
        print(json.dumps({"us": seconds / count * 1e6, "reward": earned / count}), flush=True)
