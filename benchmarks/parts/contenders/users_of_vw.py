"""Vowpal Wabbit serves users of our simulator: a model for each user, with the features that ours have, the category
and the tip.
"""

import random
import sys
from typing import Any

import numpy as np
from vowpal_wabbit_next import CBLabel, Example, Workspace

from benchmarks.parts.contenders.asked import Offered, answer

EXPLORING = {"epsilon": ["--epsilon", "0.05"], "squarecb": ["--squarecb"], "bag": ["--bag", "5"]}


class VowpalWabbit:
    def __init__(self, exploring: str) -> None:
        self._words = ["--cb_explore_adf", "--noconstant", "--quiet", *EXPLORING[exploring]]
        self._drawn = random.Random(7)
        self._model: bytes | None = None
        self._indices: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        self._workspace: Any = Workspace(self._words) if self._model is None else Workspace(model_data=self._model)
        self._pending: dict[str, tuple[list[Any], int, float]] = {}

    def choose(self, event: str, offered: Offered) -> int:
        examples = [self._example(*one) for one in zip(offered.features, offered.categories, offered.tips, strict=True)]
        likely = self._workspace.predict_one(examples)
        position, propensity = self._drawn.choices(likely, [share for _, share in likely])[0]
        self._pending[event] = examples, int(position), float(propensity)
        return int(position)

    def learn(self, event: str, reward: float) -> None:
        examples, position, propensity = self._pending.pop(event)
        examples[position].set_label(CBLabel(label=(-reward, propensity)))
        self._workspace.learn_one(examples)

    def keep(self) -> None:
        self._model = self._workspace.serialize()

    def _example(self, features: list[float], category: int, tip: int) -> Any:
        names = [*(f"f{number}" for number in range(len(features))), f"c{category}", f"t{tip}"]
        example = Example()
        where = np.array([self._index(name) for name in names], dtype=np.uint64)
        example["a"].push_many_features(where, np.array([*features, 1.0, 1.0], dtype=np.float32))
        example.set_label(CBLabel())
        return example

    def _index(self, name: str) -> int:
        if name not in self._indices:
            self._indices[name] = self._workspace.get_index_for_scalar_feature(name, namespace_name="a")
        return self._indices[name]


if __name__ == "__main__":
    answer(VowpalWabbit(sys.argv[1]))
