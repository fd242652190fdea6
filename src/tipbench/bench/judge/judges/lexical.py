"""A rule-based judge without a model, for running the pipeline unattended; its scores are provisional.

Each criterion of a rubric names its rule (`lexical:`), so that this module does not depend on a particular rubric.
The rules consider only words: they can tell an empty phrase from a concrete sentence, but not sense from nonsense.
"""

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.suites.rubric import Criterion, Rubric

_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"\d")
_COMMON = frozenset(
    [
        "about",
        "after",
        "also",
        "been",
        "before",
        "from",
        "have",
        "into",
        "just",
        "like",
        "make",
        "more",
        "most",
        "much",
        "need",
        "only",
        "over",
        "some",
        "such",
        "take",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "time",
        "until",
        "very",
        "want",
        "what",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
        "would",
        "your",
        "yours",
        "work",
        "working",
        "task",
        "tasks",
    ]
)
_VAGUE = re.compile(
    r"\b(try to|consider|maybe|perhaps|should|could|be sure|make sure|remember|always|never|important|productive|"
    r"productivity|efficient|stay focused|stay organi[sz]ed|prioriti[sz]e)\b",
    re.IGNORECASE,
)
_HARSH = re.compile(r"\b(must|never|always|stop being|lazy|failure|excuses?|no matter what|obviously)\b", re.IGNORECASE)
_SHOUT = re.compile(r"!|\b[A-Z]{4,}\b|[\U0001F300-\U0001FAFF]")


class LexicalJudge:
    """Scores every item by the rules named in the rubric's criteria."""

    identity = JudgeName("lexical", provisional=True, kind="lexical")

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        filled = copy.deepcopy(file)
        for item in filled["items"]:
            for name, criterion in self._rubric.criteria.items():
                share = _RULES[criterion.lexical](item["scenario"], item["candidate"])
                item["scores"][name] = _on_scale(criterion, share)
            for name, flag in self._rubric.flags.items():
                if flag.check is None:
                    item["flags"][name] = flag.worst
        return filled


def _on_scale(criterion: Criterion, share: float) -> int:
    return criterion.min + round(share * (criterion.max - criterion.min))


def _overlap(scenario: str, candidate: str) -> float:
    """Score the words that the candidate shares with the scenario; five or more score 1."""
    shared = (_words(candidate) & _words(scenario)) - _COMMON
    return min(len(shared), 5) / 5


def _concrete(scenario: str, candidate: str) -> float:
    """Score numbers, words of the scenario and a moderate length; subtract for vague words."""
    points = 0.35 * bool(_NUMBER.search(candidate))
    points += 0.15 * min(len((_words(candidate) & _words(scenario)) - _COMMON), 3)
    points += 0.2 * (5 <= len(candidate.split()) <= 30)
    return max(0.0, min(1.0, points - 0.2 * len(_VAGUE.findall(candidate))))


def _calm(scenario: str, candidate: str) -> float:  # noqa: ARG001 - one signature for all rules
    """Subtract for shouting and harsh words; fewer than three words have no tone and score 0.25."""
    if len(candidate.split()) < 3:
        return 0.25
    faults = len(_SHOUT.findall(candidate)) + 2 * len(_HARSH.findall(candidate))
    return max(0.0, 0.75 - 0.25 * faults)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


_RULES: Mapping[str, Callable[[str, str], float]] = {
    "overlap": _overlap,
    "concrete": _concrete,
    "calm": _calm,
}
