"""Replays a decision on anybody's matrix of scores, from a CSV file: what would judging in rounds have decided?"""

import csv
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tipbench.bench.compare.inference import is_at_an_end
from tipbench.bench.decide.verdict import Verdict, rules_for
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.files import read_text
from tipbench.core.untrusted import printable, shown
from tipbench.statistics.betting import WEALTH, Claim, decide
from tipbench.statistics.interval import Interval

_COLUMNS = ("row", "item", "score")
_MAX_PROBLEMS = 10


def replay(
    path: Path,
    claim: Claim = "pool",
    good_enough: float = 0.15,
    seed: int | None = None,
    scale: tuple[float, float] | None = None,
    budget: int | None = None,
) -> Verdict:
    """Decide between the rows of a CSV file with the columns row, item, score and, optionally, cluster.

    Items are taken in the order of the file, or shuffled if there is a seed; of each cluster one item is drawn. Without
    a scale, it is taken from the scores in the file. `good_enough` is in points of that scale.
    """
    matrix = _read(path)
    order = _drawn(matrix.items, matrix.clusters, seed)
    low, high = scale or (min(matrix.scores.values()), max(matrix.scores.values()))
    if not low < high:
        raise InvalidInput(f"all scores in {path} are {low:g}, so there is nothing to decide; give --scale LO,HI")
    outside = next((value for value in matrix.scores.values() if not low <= value <= high), None)
    if outside is not None:
        raise InvalidInput(f"{path} has the score {outside:g}, outside of --scale {low:g},{high:g}")
    scores = np.array([[matrix.scores[row, item] for row in matrix.rows] for item in order])
    rules = rules_for(claim, len(order), good_enough, (low, high), WEALTH)
    rules = replace(rules, budget=budget)
    state = decide((scores - low) / (high - low), rules)
    used_up = "the pool is used up" if state.items == len(order) else f"the budget of {budget} judgements is used up"
    at_an_end = is_at_an_end(scores[: state.items], Interval(low, high))
    stopped = "" if state.is_over else used_up
    return Verdict(matrix.rows, rules, (low, high), state, at_an_end=at_an_end, stopped=stopped)


class _Matrix:
    """A complete matrix of scores, with rows and items in the order of the file."""

    def __init__(self, scores: Mapping[tuple[str, str], float], clusters: Mapping[str, str]) -> None:
        self.scores = scores
        self.rows = tuple(dict.fromkeys(row for row, _ in scores))
        self.items = tuple(dict.fromkeys(item for _, item in scores))
        self.clusters = clusters


def _drawn(items: Sequence[str], clusters: Mapping[str, str], seed: int | None) -> list[str]:
    """Draw one item per cluster; in the order of the file without a seed, else shuffled."""
    rng = random.Random(seed or 0)
    by_cluster: dict[str, list[str]] = {}
    for item in items:
        by_cluster.setdefault(clusters.get(item, f"item {item}"), []).append(item)
    drawn = {rng.choice(found) for found in by_cluster.values()}
    order = [item for item in items if item in drawn]
    if seed is not None:
        rng.shuffle(order)
    return order


def _read(path: Path) -> _Matrix:
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}") from None
    reader = csv.DictReader(lines)
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise InvalidInput(f"{path} needs the columns {', '.join(_COLUMNS)}; {', '.join(missing)} not found")
    problems: list[str] = []
    scores: dict[tuple[str, str], float] = {}
    clusters: dict[str, str] = {}
    for line in reader:
        _add(line, reader.line_num, scores, clusters, problems)
    matrix = _Matrix(scores, clusters)
    problems += _gaps(matrix)
    if len(matrix.rows) < 2 and not problems:
        problems.append(f"there must be at least two rows; there is {len(matrix.rows)}")
    if problems:
        raise Problems(f"{path} can't be used:", problems[:_MAX_PROBLEMS])
    return matrix


def _add(
    line: Mapping[str, str | None],
    number: int,
    scores: dict[tuple[str, str], float],
    clusters: dict[str, str],
    problems: list[str],
) -> None:
    row, item, text = (str(line.get(name) or "").strip() for name in _COLUMNS)
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not row or not item or not math.isfinite(score):
        problems.append(f"line {number}: needs a row, an item and a number as its score (given: {shown(text, 40)})")
    elif (row, item) in scores:
        problems.append(f"line {number}: {printable(row, 60)} has two scores on item {printable(item, 60)}")
    else:
        scores[row, item] = score
        cluster = str(line.get("cluster") or "").strip()
        if cluster and clusters.setdefault(item, cluster) != cluster:
            problems.append(f"line {number}: item {printable(item, 60)} is in two clusters")


def _gaps(matrix: _Matrix) -> Iterable[str]:
    return [
        f"{printable(row, 60)} has no score on item {printable(item, 60)}"
        for item in matrix.items
        for row in matrix.rows
        if (row, item) not in matrix.scores
    ][:_MAX_PROBLEMS]
