"""Logged decisions as arrays, which any estimator can be given; and the handwritten digits as such decisions."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class BanditLog(NamedTuple):
    """By decision, the last three by action too."""

    action: NDArray[np.intp]
    reward: Floats
    logged: Floats  # how likely each action was to the policy that chose
    asked: Floats  # the same to the policy that is asked about
    expected: Floats  # rewards, by some model

    def write(self, path: Path) -> None:
        np.savez(path, **self._asdict())

    def of_action(self, values: Floats) -> Floats:
        found: Floats = values[np.arange(len(self.action)), self.action]
        return found


def read_log(path: Path) -> BanditLog:
    with np.load(path) as arrays:
        return BanditLog(*(arrays[name] for name in BanditLog._fields))


def digits_log(images: Any, digits: Any) -> BanditLog:
    """A policy guesses which digit an image shows, and gets 1 if it is right.

    It likes what the image is near to, out of the means of each digit's images in the first half; the asked one takes
    the nearest, nine times of ten.
    """
    half = len(digits) // 2
    means = np.array([images[:half][digits[:half] == digit].mean(axis=0) for digit in range(10)])
    apart = ((images[half:, None] - means) ** 2).sum(axis=2)
    liked = np.exp(-(apart - apart.min(axis=1, keepdims=True)) / 400)
    logged = 0.8 * liked / liked.sum(axis=1, keepdims=True) + 0.02
    asked = np.full_like(logged, 0.01)
    asked[np.arange(len(asked)), apart.argmin(axis=1)] += 0.9
    chance = np.random.Generator(np.random.PCG64(7)).random(len(asked))
    action = (chance[:, None] * logged.sum(axis=1, keepdims=True) >= logged.cumsum(axis=1)).sum(axis=1)
    reward = (action == digits[half:]).astype(np.float64)
    return BanditLog(action, reward, logged, asked, liked)
