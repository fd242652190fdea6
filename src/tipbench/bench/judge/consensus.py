"""One score for a candidate from several judges, who may have seen different candidates.

The model: a judge's score is the candidate's worth plus the judge's own leaning. Leanings are estimated, criterion by
criterion, from candidates that several judges scored, by least squares, and taken off before averaging: so a cell is
not better off for having met the lenient judge. Judges who share too few candidates can't be put on one scale; they are
taken as they are, and said to be so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

ENOUGH_SHARED = 10  # candidates, to tell one judge's leaning from another's
_ROUNDS = 200
_SMALL = 1e-10

Item = tuple[str, int]  # run, candidate
Given = Mapping[str, Mapping[Item, Mapping[str, float]]]  # judge → item → name → score


@dataclass(frozen=True)
class Consensus:
    """The scores of each candidate, and how each judge leans."""

    scores: Mapping[Item, Mapping[str, float]]
    leanings: Mapping[str, Mapping[str, float]]  # judge → name → points above the others
    apart: tuple[tuple[str, ...], ...]  # groups of judges that share too little to be compared


def consensus(given: Given, names: Iterable[str]) -> Consensus:
    groups = _groups(given)
    leanings: dict[str, dict[str, float]] = {judge: {} for judge in given}
    for name in names:
        for group in groups:
            for judge, value in _leanings(group, given, name).items():
                leanings[judge][name] = value
    collected: dict[Item, list[Mapping[str, float]]] = {}
    for judge, items in given.items():
        for item, scores in items.items():
            adjusted = {name: score - leanings[judge].get(name, 0.0) for name, score in scores.items()}
            collected.setdefault(item, []).append(adjusted)
    means = {item: {name: fmean(one[name] for one in found) for name in found[0]} for item, found in collected.items()}
    return Consensus(means, leanings, tuple(groups) if len(groups) > 1 else ())


def _groups(given: Given) -> list[tuple[str, ...]]:
    """Judges that are linked by enough shared candidates, directly or through others."""
    groups: list[set[str]] = []
    for judge in sorted(given):
        linked = [group for group in groups if any(_shared(given, judge, other) >= ENOUGH_SHARED for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append({judge}.union(*linked))
    return sorted(tuple(sorted(group)) for group in groups)


def _shared(given: Given, one: str, other: str) -> int:
    return len(given[one].keys() & given[other].keys())


def _leanings(group: tuple[str, ...], given: Given, name: str) -> dict[str, float]:
    """Least squares of score = worth + leaning; leanings are measured from the mean of all scores of the group."""
    if len(group) == 1:
        return {group[0]: 0.0}
    by_item: dict[Item, dict[str, float]] = {}
    for judge in group:
        for item, scores in given[judge].items():
            by_item.setdefault(item, {})[judge] = scores[name]
    shared = [scores for scores in by_item.values() if len(scores) > 1]
    leaning = dict.fromkeys(group, 0.0)
    for _ in range(_ROUNDS):
        rests: dict[str, list[float]] = {judge: [] for judge in group}
        for scores in shared:
            worth = fmean(score - leaning[judge] for judge, score in scores.items())
            for judge, score in scores.items():
                rests[judge].append(score - worth)
        new = {judge: fmean(found) if found else 0.0 for judge, found in rests.items()}
        moved = max(abs(new[judge] - leaning[judge]) for judge in group)
        leaning = new
        if moved < _SMALL:
            break
    total = sum(len(given[judge]) for judge in group)
    middle = sum(leaning[judge] * len(given[judge]) for judge in group) / total
    return {judge: value - middle for judge, value in leaning.items()}
