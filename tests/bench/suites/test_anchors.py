"""Anchors: the shipped ones cover the scale, and a file that is wrong is told so by line."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tipbench.bench.suites.anchors import (
    NAME,
    AnchorEntry,
    accept_anchors,
    entries_text,
    is_writable,
    read_anchors,
    read_private_anchors,
)
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.settings import Settings

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


# Accepting: entries are added to a suite's file.

texts = st.text(min_size=1).filter(lambda text: text not in SUITE.rubric.text)


def entry(text: str = "Rest.", **more: Any) -> AnchorEntry:
    scores = dict.fromkeys(SUITE.rubric.criteria, 3)
    values = {"id": "a-1", "scenario": "electrician-morning", "candidate": text, "scores": scores, "reason": "so"}
    return AnchorEntry(**{**values, "by": ["lena", "tom"], **more})


def own_suite(folder: Path, text: str | None) -> Suite:
    """A suite that could be anybody's, with this file of anchors."""
    if text is not None:
        (folder / NAME).write_text(text, encoding="utf-8")
    return replace(SUITE, folder=folder, anchors=(), is_built_in=False)


@given(texts, st.text(min_size=1))
def test_an_entry_that_can_be_written_reads_back_as_it_is(text: str, reason: str) -> None:
    made = entry(text, reason=reason)
    problems: list[str] = []
    if is_writable(made):
        (found,) = read_anchors(entries_text([made]), NAME, SCENARIOS, SUITE.rubric, problems)
        assert (found.candidate, found.reason, found.by) == (text, reason, ("lena", "tom"))


@pytest.mark.parametrize(
    "text", ["a: b # no", "- x", "\n\n y\t", "é 🎉 ‘’", "\u2028\x85\u202e", "{{ x }}", "'\"\\", "yes"]
)
def test_what_models_write_can_be_written(text: str) -> None:
    assert is_writable(entry(text))


@pytest.mark.parametrize(
    "before",
    [None, "[]\n", "# only a comment\n[]", GOOD, f"# mine\n{GOOD}# end", "  - " + GOOD[2:].replace("\n", "\n  ")],
)
def test_what_is_accepted_is_added_and_the_rest_stays(tmp_path: Path, before: str | None) -> None:
    suite = own_suite(tmp_path, before)
    assert accept_anchors(suite, [entry()], Settings(), print) == ["a-1"]
    text = (tmp_path / NAME).read_text()
    problems: list[str] = []
    found = read_anchors(text, NAME, SCENARIOS, SUITE.rubric, problems)
    assert (problems, [one.id for one in found][-1]) == ([], "a-1")
    assert text.startswith((before or "").rstrip().removesuffix("[]"))
    assert accept_anchors(suite, [entry()], Settings(), print) == [], "once"
    assert (tmp_path / NAME).read_text() == text


@pytest.mark.parametrize(
    ("before", "added", "told"),
    [
        (GOOD, {"id": "own-1"}, "the id is used twice"),
        (GOOD, {"scores": {"relevance": 9}}, "9 is outside"),
        ('[{"id": "x", "scenario": "electrician-morning", "candidate": "c", "scores": {}, "reason": "r"}]', {}, "YAML"),
        ("a: [", {}, "YAML"),
    ],
)
def test_what_the_file_cant_take_changes_nothing(tmp_path: Path, before: str, added: Any, told: str) -> None:
    with pytest.raises(SuiteError, match=told):
        accept_anchors(own_suite(tmp_path, before), [entry(**added)], Settings(), print)
    assert (tmp_path / NAME).read_text() == before


def test_a_built_in_suite_is_not_changed() -> None:
    with pytest.raises(InvalidInput, match=r"built in and can't be changed; .*TIPBENCH_ANCHORS"):
        accept_anchors(SUITE, [entry()], Settings(), print)
