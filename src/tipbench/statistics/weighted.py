"""Means of what was chosen by chance, as if everything on offer had been chosen alike.

What is chosen with the probability p stands for 1/p occasions on which it was on offer. Weighted so, and divided by the
sum of the weights, values are free of what the choice depended on, as long as everything on offer had a chance and p is
exact. The price is variance, which the effective sample size tells: weights that differ make many values worth few.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class WeightedMean(NamedTuple):
    mean: float
    effective: float  # Kish's: so many values of equal weight would tell as much, were they independent


def inverse_propensity_mean(values: Floats, propensities: Floats) -> WeightedMean:
    """The self-normalised one. No values, or a propensity outside (0, 1], are a ValueError."""
    if not values.size:
        raise ValueError("no values, so no mean")
    if not (propensities.min() > 0 and propensities.max() <= 1 + 1e-9):
        raise ValueError(f"propensities outside (0, 1]: {propensities.min()}..{propensities.max()}")
    weights = propensities.min() / propensities  # at most 1: nothing can overflow
    return WeightedMean(float((weights * values).sum() / weights.sum()), float(weights.sum() ** 2 / (weights**2).sum()))
