"""How much the candidates of one cell differ from each other."""

import re
from collections.abc import Sequence
from itertools import combinations

_WORD = re.compile(r"\w+")


def diversity(candidates: Sequence[str]) -> float | None:
    """The mean over all pairs of the share of words that the two don't have in common (Jaccard distance).

    0: all have the same words; 1: no two share a word. None for fewer than two candidates.
    """
    if len(candidates) < 2:
        return None
    words = [frozenset(_WORD.findall(candidate.casefold())) for candidate in candidates]
    distances = [1 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in combinations(words, 2)]
    return sum(distances) / len(distances)
