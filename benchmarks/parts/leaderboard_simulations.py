"""Simulated grids through the leaderboard's statistics, beside what others do with the same scores.

Each function returns plain records, one for each setting. Every setting has random numbers of its own, so that a figure
does not depend on what else is run.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from benchmarks.parts.rival_rules import bootstrap_intervals, highest_mean, leader_t, nemenyi, t_intervals
from benchmarks.parts.score_worlds import HIGHEST, LOWEST, SCATTERING, TIMES, Floats, World, personas
from tipbench.bench.compare.answer import FEW_UNITS
from tipbench.bench.compare.inference import is_at_an_end
from tipbench.statistics import units
from tipbench.statistics.bounded import bounded_intervals
from tipbench.statistics.interval import Interval
from tipbench.statistics.planning import LEVEL, more_units, separable
from tipbench.statistics.top_group import critical_at_many_units, draw_means, expected_loss, probability_best, top_group
from tipbench.statistics.units import NEGLIGIBLE, Paired, paired

Record = dict[str, Any]
Flags = NDArray[np.bool_]
ROWS = 12  # 4 models × 3 prompts
_EDGES = (0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0)  # of the bins of probabilities


def random_of(seed: int, *setting: object) -> np.random.Generator:
    return np.random.default_rng([seed, *"/".join(map(str, setting)).encode()])


def _pairs(scores: Floats) -> Iterator[Paired]:
    """Grids over the units that the leaderboard takes: personas, or scenarios where personas can't decide anything."""
    rows, scenarios = scores.shape[1:]
    names = personas(scenarios).tolist() if separable(rows, scenarios // TIMES) else None
    return (paired(grid, names) for grid in scores)


def _shut_out(grids: Iterator[Paired], draws: int) -> Flags:
    """What the top group leaves out; each grid is shuffled in its own way."""
    return np.array([~top_group(grid, draws=draws, seed=number).members for number, grid in enumerate(grids)])


def at_most(count: int, of: int) -> float:
    """Clopper and Pearson's upper bound of a share, one-sided, 95 %."""
    return 1.0 if count == of else float(beta.ppf(0.95, count + 1, of - count))


def coverage(worlds: Sequence[World], sizes: Sequence[int], repetitions: int, seed: int) -> list[Record]:
    """How often 95 % intervals hold the true mean, and how wide they are."""
    records = []
    for world in worlds:
        for scenarios in sizes:
            random = random_of(seed, "coverage", world.name, scenarios)
            # Of worlds with two kinds of rows, the second is the one that scatters more.
            scores = world.draw(random, repetitions, np.zeros(2), scenarios)[:, 1]
            groups = personas(scenarios)
            ends = {
                "ours": _ends(scores, groups),
                "t over scenarios": t_intervals(scores),
                "t over personas": t_intervals(scores.reshape(repetitions, -1, TIMES).mean(axis=2)),
                "bootstrap": bootstrap_intervals(scores, random),
                "Gaffke, no groups": _ends(scores, None),
            }
            record: Record = {"world": world.name, "promised": world.promised, "scenarios": scenarios}
            for name, (lows, highs) in ends.items():
                covered = (lows - NEGLIGIBLE <= world.mean()) & (world.mean() <= highs + NEGLIGIBLE)
                record[name] = {"coverage": float(covered.mean()), "width": float((highs - lows).mean())}
            records.append(record)
    return records


def _ends(scores: Floats, groups: NDArray[np.intp] | None) -> tuple[Floats, Floats]:
    ends = np.array(bounded_intervals(scores, LOWEST, HIGHEST, groups))
    return ends[:, 0], ends[:, 1]


RIVALS: dict[str, Callable[[Floats], Flags]] = {
    "by means": highest_mean,
    "plain t": lambda scores: leader_t(scores, holm=False),
    "Holm t": lambda scores: leader_t(scores, holm=True),
    "Nemenyi": nemenyi,
}


def equality(world: World, rows: int, scenarios: int, grids: int, draws: int, seed: int) -> Record:
    """In how many grids of equal rows some row is shut out."""
    scores = world.draw(random_of(seed, "equality", world.name, rows, scenarios), grids, np.zeros(rows), scenarios)
    wrong = int(_shut_out(_pairs(scores), draws).any(axis=1).sum())
    by_scenario = scores[: max(1, grids // 4)]
    record: Record = {
        "world": world.name,
        "promised": world.promised and separable(rows, scenarios // TIMES),
        "rows": rows,
        "scenarios": scenarios,
        "grids": grids,
        "units": "personas" if separable(rows, scenarios // TIMES) else "scenarios",
        "ours": wrong / grids,
        "ours at most": at_most(wrong, grids),
        "ours over scenarios": float(_shut_out(map(paired, by_scenario), draws).any(axis=1).mean()),
    }
    for name, rule in RIVALS.items():
        out = rule(scores)
        wrongly = out.sum(axis=1) == rows - 1 if rule is highest_mean else out.any(axis=1)
        record[name] = float(wrongly.mean())
    return record


def _one_best(rows: int, gap: float) -> Floats:
    return np.array([0.0] + [gap] * (rows - 1))


def power(world: World, scenarios: int, gap: float, stairs: bool, grids: int, draws: int, seed: int) -> Record:
    """How well the best of twelve rows is told from the others.

    Either it is better by the gap than eleven equal ones, or rows lie behind each other by a quarter of the gap each;
    then those that lie at least the gap behind are asked for.
    """
    behind = gap / 4 * np.arange(ROWS, dtype=np.float64) if stairs else _one_best(ROWS, gap)
    shifts = world.shifts(behind)
    means = np.array([world.mean(shift) for shift in shifts])
    scores = world.draw(random_of(seed, "power", world.name, scenarios, gap, stairs), grids, shifts, scenarios)
    record: Record = {
        "world": world.name,
        "scenarios": scenarios,
        "gap": gap,
        "realised gap": float(means[0] - means[4 if stairs else 1]),
        "stairs": stairs,
        "grids": grids,
    }
    worse = behind >= gap - NEGLIGIBLE
    for name, out in {"ours": _shut_out(_pairs(scores), draws), "Holm": leader_t(scores, holm=True)}.items():
        record[name] = {
            "exactly the best": float((out[:, 1:].all(axis=1) & ~out[:, 0]).mean()),
            "worse rows out": float(out[:, worse].mean()),
            "best row out": float(out[:, 0].mean()),
            "group size": float((~out).sum(axis=1).mean()),
        }
    first = ~highest_mean(scores)
    record["by means"] = float((first[:, 0] / first.sum(axis=1)).mean())
    return record


def calibration(world: World, scenarios: int, spread: float, grids: int, draws: int, seed: int) -> Record:
    """Whether rows that are said to be the best with some probability are the best that often.

    True means are drawn with the standard deviation `spread`, which nobody is told.
    """
    random = random_of(seed, "calibration", world.name, scenarios)
    shifts = random.standard_normal((grids, ROWS)) * abs(world.shift(spread if world.upwards else -spread))
    scores = world.draw(random, grids, shifts, scenarios)
    truth = shifts == shifts.max(axis=1, keepdims=True)
    pairs = list(_pairs(scores))
    first = ~highest_mean(scores)
    said = {
        "ours": np.array([probability_best(draw_means(grid, draws, number)) for number, grid in enumerate(pairs)]),
        "no unseen unit": np.array([_bootstrap(grid, 0, draws, random) for grid in pairs]),
        "two unseen units": np.array([_bootstrap(grid, 2, draws, random) for grid in pairs]),
        "by means": first / first.sum(axis=1, keepdims=True),
    }
    record: Record = {"world": world.name, "scenarios": scenarios, "spread": spread, "grids": grids}
    for name, probabilities in said.items():
        place = np.digitize(probabilities, _EDGES[1:-1])
        bins = [
            {
                "from": _EDGES[number],
                "to": _EDGES[number + 1],
                "rows": int((place == number).sum()),
                "said": _mean(probabilities[place == number]),
                "true": _mean(truth[place == number]),
            }
            for number in range(len(_EDGES) - 1)
        ]
        record[name] = {"brier": float(((probabilities - truth) ** 2).sum(axis=1).mean()), "bins": bins}
    return record


def losses(world: World, scenarios: int, gap: float, stairs: bool, grids: int, draws: int, seed: int) -> Record:
    """What picking the row with the highest mean is said to lose, and what it loses, over personas."""
    behind = gap / 4 * np.arange(ROWS, dtype=np.float64) if stairs else _one_best(ROWS, gap)
    random = random_of(seed, "losses", world.name, scenarios, gap, stairs)
    shifts = world.shifts(behind)
    truth = np.array([world.mean(shift, other=bool(row % 2)) for row, shift in enumerate(shifts)])
    scores = world.draw(random, grids, shifts, scenarios)
    pairs = [paired(grid, personas(scenarios).tolist()) for grid in scores]
    leaders = [int(grid.means.argmax()) for grid in pairs]
    said = [
        expected_loss(draw_means(grid, draws, number), leader)
        for number, (grid, leader) in enumerate(zip(pairs, leaders, strict=True))
    ]
    ends = Interval(LOWEST, HIGHEST)
    return {
        "world": world.name,
        "scenarios": scenarios,
        "gap": gap,
        "stairs": stairs,
        "grids": grids,
        "said": float(np.mean(said)),
        "true": float((truth.max() - truth[leaders]).mean()),
        "said to be too low": float(
            np.mean([scenarios // TIMES < FEW_UNITS or is_at_an_end(grid, ends) for grid in scores])
        ),
    }


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if values.size else None


def _bootstrap(grid: Paired, unseen: int, draws: int, random: np.random.Generator) -> Floats:
    """The probability of being the best with another number of unseen units."""
    weights = random.standard_exponential((draws, grid.units)) * (grid.weights * grid.units)
    sums = weights @ grid.scores.T
    for _ in range(unseen):
        dealt = random.permuted(grid.scores.T[random.integers(grid.units, size=draws)], axis=1)
        sums += random.standard_exponential((draws, 1)) * dealt
    best = sums >= sums.max(axis=1, keepdims=True) - NEGLIGIBLE
    shares: Floats = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def planned(world: World, rows: int, gap: float, grids: int, draws: int, seed: int) -> Record:
    """How often a row is told from one that is better by the gap, with as many units as were said to be needed.

    The others are as good as the worse of the two. The number comes from the true gap and scatter, from the critical
    value that such grids have with 8 scenarios (16 where personas could not tell them apart with 8), and from that of
    many units, as on the leaderboard.
    """
    random = random_of(seed, "planned", world.name, rows, gap)
    shifts = world.shifts(_one_best(rows, gap))
    start = 8 if separable(rows, 8 // TIMES) else 16
    small = world.draw(random, 50, shifts, start)
    critical = float(np.mean([top_group(grid, draws=draws, seed=n).critical for n, grid in enumerate(_pairs(small))]))
    many = world.draw(random, 50, shifts[:2], 2000).reshape(50, 2, -1, TIMES).mean(axis=3)
    scatter = float((many[:, 0] - many[:, 1]).std())
    at_hand = start // TIMES
    needed = at_hand + int(more_units(gap, scatter, critical, at_hand, critical_at_many_units(rows, LEVEL)))
    names = personas(needed * TIMES).tolist()
    drawn = (world.draw(random, 1, shifts, needed * TIMES)[0] for _ in range(grids))
    out = _shut_out((paired(grid, names) for grid in drawn), draws)
    return {
        "world": world.name,
        "rows": rows,
        "gap": gap,
        "scatter": scatter,
        "critical": critical,
        "personas": needed,
        "grids": grids,
        "told apart": float((out[:, 1] & ~out[:, 0]).mean()),
    }


def borrowed(degrees: float, scenarios: int, grids: int, draws: int, seed: int, worlds: dict[str, World]) -> Record:
    """What other degrees of freedom, borrowed from the scatter of all pairs, would do to errors and to power."""
    record: Record = {"degrees": degrees, "scenarios": scenarios, "grids": grids}
    settings = {"scatter 2×": 0.0, "scatter 6×": 0.0, "even": 2.0, "personas 0.7": 2.0}
    with patch.object(units, "PRIOR_DEGREES", degrees):
        for name, gap in settings.items():
            shifts = worlds[name].shifts(_one_best(ROWS, gap))
            scores = worlds[name].draw(random_of(seed, "borrowed", name, scenarios), grids, shifts, scenarios)
            out = _shut_out(_pairs(scores), draws)
            record[name] = float(out[:, 1:].mean() if gap else out.any(axis=1).mean())
    return record


def steady(best: int, others: World, scenarios: int, grids: int, draws: int, seed: int) -> Record:
    """How often one of the best rows is shut out, where they scatter and all the others, far behind, hardly do."""
    random = random_of(seed, "steady", best, others.name, scenarios)
    scores = np.concatenate(
        [
            SCATTERING.draw(random, grids, np.zeros(best), scenarios),
            others.draw(random, grids, np.zeros(ROWS - best), scenarios),
        ],
        axis=1,
    )
    out = _shut_out(_pairs(scores), draws)
    wrong = int(out[:, :best].any(axis=1).sum())
    return {
        "best": best,
        "others": others.name,
        "scenarios": scenarios,
        "grids": grids,
        "best row out": wrong / grids,
        "best row out at most": at_most(wrong, grids),
        "worse rows out": float(out[:, best:].mean()),
    }
