"""How likely each row is the best one."""

import numpy as np

from tipbench.statistics.units import Floats, Paired

_DRAWS = 10_000
_ROUNDING = 1e-9  # of the largest sum


def probability_best(paired: Paired, draws: int = _DRAWS, seed: int = 0) -> Floats:
    """For each row the probability that its mean over all units there could be is the highest; they add up to 1.

    The units at hand get random weights (a Bayesian bootstrap), so that what they say counts only as far as they agree.
    One more unit stands for what nobody has seen: one of those at hand, with the rows' scores dealt out at random.
    Without it, the better of two rows that is ahead in all of four units would be the best for certain; with it, with
    97 %, 1 less half the p of a one-sided sign test. Units are taken for independent and for a random sample. Rows that
    share the highest mean share the probability.
    """
    random = np.random.default_rng(seed)
    weights = random.standard_exponential((draws, paired.units)) * (paired.weights * paired.units)
    unseen = random.permuted(paired.scores.T[random.integers(paired.units, size=draws)], axis=1)
    sums = weights @ paired.scores.T + random.standard_exponential((draws, 1)) * unseen
    best = sums >= sums.max(axis=1, keepdims=True) - _ROUNDING * np.abs(sums).max(axis=1, keepdims=True)
    shares: Floats = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
