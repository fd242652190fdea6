"""What others do with the same scores: common intervals, and common ways to say which rows may be the best.

Scores are repetitions × scenarios, or grids × rows × scenarios; everything is computed for all of them at once.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit
from scipy.stats import chi2, rankdata, studentized_range

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_LEVEL = 0.05


def t_intervals(values: Floats) -> tuple[Floats, Floats]:
    """Student's t, 95 %."""
    n = values.shape[1]
    margin = float(stdtrit(n - 1, 1 - _LEVEL / 2)) * values.std(axis=1, ddof=1) / np.sqrt(n)
    means = values.mean(axis=1)
    return means - margin, means + margin


def bootstrap_intervals(values: Floats, random: np.random.Generator, draws: int = 999) -> tuple[Floats, Floats]:
    """Percentiles of the mean of scenarios drawn again; the same draws for every repetition."""
    n = values.shape[1]
    counts = random.multinomial(n, np.full(n, 1 / n), size=draws)
    lows, highs = np.quantile(values @ counts.T / n, (_LEVEL / 2, 1 - _LEVEL / 2), axis=1)
    return lows, highs


def highest_mean(scores: Floats) -> Flags:
    """Ranking by means: every row below the highest mean is shut out."""
    means = scores.mean(axis=2)
    out: Flags = means < means.max(axis=1, keepdims=True) - 1e-9
    return out


def leader_t(scores: Floats, holm: bool) -> Flags:
    """The row with the highest mean against each other row: paired t over scenarios, at 5 %, as it is or after Holm."""
    rows, n = scores.shape[1:]
    means = scores.mean(axis=2)
    leader = means.argmax(axis=1)
    apart = np.take_along_axis(scores, leader[:, np.newaxis, np.newaxis], axis=1) - scores
    error = apart.std(axis=2, ddof=1) / np.sqrt(n)
    gap = apart.mean(axis=2)
    sizes = np.divide(gap, error, out=np.where(gap > 1e-9, np.inf, 0.0), where=error > 1e-12)
    p: Floats = 2 * stdtr(n - 1, -sizes)
    np.put_along_axis(p, leader[:, np.newaxis], 1.0, axis=1)
    if not holm:
        return p <= _LEVEL
    order = p.argsort(axis=1)
    divisors = np.maximum(rows - 1 - np.arange(rows), 1)
    passed = np.logical_and.accumulate(np.take_along_axis(p, order, axis=1) <= _LEVEL / divisors, axis=1)
    out = np.zeros_like(passed)
    np.put_along_axis(out, order, passed, axis=1)
    return out


def nemenyi(scores: Floats) -> Flags:
    """Friedman's test over scenarios and, where it finds something, Nemenyi's critical distance to the best rank."""
    rows, n = scores.shape[1:]
    ranks = rankdata(scores, axis=1)
    means = ranks.mean(axis=2)
    between = n * ((means - (rows + 1) / 2) ** 2).sum(axis=1)
    scatter = ((ranks - (rows + 1) / 2) ** 2).sum(axis=(1, 2)) / (n * (rows - 1))
    found = between >= chi2.isf(_LEVEL, rows - 1) * np.maximum(scatter, 1e-12)
    distance = float(studentized_range.isf(_LEVEL, rows, np.inf)) / np.sqrt(2) * np.sqrt(rows * (rows + 1) / (6 * n))
    out: Flags = found[:, np.newaxis] & (means.max(axis=1, keepdims=True) - means >= distance)
    return out
