"""Anchors: the shipped ones cover the scale, and a file that is wrong is told so by line."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from tipbench.bench.suites.anchors import read_private_anchors
from tipbench.bench.suites.load import load_suite
from tipbench.core.errors import InvalidInput, SuiteError

SUITE = load_suite("tip")
SCENARIOS = {scenario.id: scenario for scenario in SUITE.scenarios}
GOOD = """\
- id: own-1
  scenario: electrician-morning
  candidate: "Text."
  scores: {relevance: 1, actionability: 2, tone: 3}
  reason: "because"
"""


def test_there_are_enough_spread_over_personas_and_the_whole_scale() -> None:
    assert len(SUITE.anchors) == 40
    assert Counter(anchor.scenario for anchor in SUITE.anchors) == {s.text: 5 for s in SUITE.scenarios}
    for name, criterion in SUITE.rubric.criteria.items():
        levels = Counter(anchor.scores[name] for anchor in SUITE.anchors)
        assert sorted(levels) == list(range(criterion.min, criterion.max + 1))
        assert min(levels.values()) >= 6
    assert all(anchor.reason for anchor in SUITE.anchors)


def test_criteria_go_apart_so_that_a_judge_who_is_off_on_one_shows() -> None:
    for one, other in combinations(SUITE.rubric.criteria, 2):
        pairs = [(anchor.scores[one], anchor.scores[other]) for anchor in SUITE.anchors]
        assert abs(spearmanr(*zip(*pairs, strict=True)).statistic) < 0.4


def test_none_is_among_the_rubrics_examples_or_names_a_model() -> None:
    for anchor in SUITE.anchors:
        assert anchor.candidate not in SUITE.rubric.text
        assert anchor.candidate[:40] not in SUITE.rubric.text


def _read(text: str, tmp_path: Path) -> int:
    path = tmp_path / "own.yaml"
    path.write_text(text, encoding="utf-8")
    found = read_private_anchors(path, SCENARIOS, SUITE.rubric)
    assert all(anchor.private for anchor in found)
    return len(found)


def test_a_teams_own_file(tmp_path: Path) -> None:
    assert _read(GOOD, tmp_path) == 1
    assert _read("[]", tmp_path) == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("electrician-morning", "nowhere", r"own\.yaml:2: anchor 'own-1': there is no scenario 'nowhere'"),
        ("relevance: 1", "relevance: 6", r"own\.yaml:4: .*relevance: 6 is outside 1–5"),
        ("relevance: 1, ", "", r"own\.yaml:4: .*relevance: is missing"),
        ("relevance: 1", "relevance: 1, wit: 1", r"own\.yaml:4: .*wit: is not a criterion"),
        ("relevance: 1", 'relevance: "1"', r"own\.yaml:4: "),
        ('"because"', '""', r"own\.yaml:5: "),
        ("reason:", "why:", r"own\.yaml:\d+: "),
        ('"Text."', '""', r"own\.yaml:3: "),
        (GOOD, GOOD + GOOD, r"own\.yaml:6: anchor 'own-1': the id is used twice"),
        (GOOD, "a: b", r"own\.yaml:1: "),
        (GOOD, "- [", r"own\.yaml:"),
    ],
)
def test_a_file_that_is_wrong_is_told_so_by_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(SuiteError, match=told):
        _read(GOOD.replace(old, new), tmp_path)


def test_an_example_of_the_rubric_is_no_anchor(tmp_path: Path) -> None:
    example = next(line.split('"')[1] for line in SUITE.rubric.text.splitlines() if line.startswith("- A: "))
    with pytest.raises(SuiteError, match="one of the rubric's examples"):
        _read(GOOD.replace("Text.", example), tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_ANCHORS"):
        read_private_anchors(tmp_path / "none.yaml", SCENARIOS, SUITE.rubric)
