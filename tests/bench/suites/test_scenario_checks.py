"""Checks that a scenario declares: part of the rubric's text, so that scores can be made again from what is stored."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tipbench.bench.suites.checks import Check
from tipbench.bench.suites.load import load_suite, write_starter
from tipbench.bench.suites.rubric import parse_rubric, with_scenario_checks
from tipbench.core.errors import SuiteError

RUBRIC = """\
---
name: r
flags:
  right: {weight: 2, check: scenario}
  hollow: {weight: -1, check: words, words: [very]}
---
Text for people.
"""


def test_a_scenarios_own_check_goes_before_the_flags_and_without_one_nothing_is_wrong() -> None:
    own = {"a": {"right": Check(check="contains", texts=["yes"]), "hollow": Check(check="words", words=["quite"])}}
    rubric = with_scenario_checks(parse_rubric(RUBRIC), own)
    assert rubric.checked_flags("very good", True, "a") == {"right": False, "hollow": False}
    assert rubric.checked_flags("yes, quite", True, "a") == {"right": True, "hollow": True}
    assert rubric.checked_flags("very good", True, "b") == {"right": True, "hollow": True}
    assert parse_rubric(rubric.text).scenario_checks == rubric.scenario_checks
    assert rubric.digest != parse_rubric(RUBRIC).digest
    assert rubric.body == "Text for people.\n"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
CHECKS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda texts: {"check": "contains", "texts": texts}, st.lists(TEXTS, min_size=1, max_size=3)),
    st.builds(lambda pattern: {"check": "regex", "pattern": pattern}, TEXTS),
    st.builds(lambda low: {"check": "number", "min": low}, st.floats(-1e9, 1e9)),
    st.builds(
        lambda value: {"check": "json_schema", "schema": {"const": value}},
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS | st.dictionaries(TEXTS, TEXTS, max_size=3),
    ),
)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "d-1"]), CHECKS, min_size=1))
@example({"a": {"check": "regex", "pattern": "0E0"}})
def test_any_check_survives_being_stored(given_checks: dict[str, dict[str, Any]]) -> None:
    own = {name: {"right": Check.model_validate(one)} for name, one in given_checks.items()}
    rubric = with_scenario_checks(parse_rubric(RUBRIC), own)
    assert rubric.scenario_checks == own
    assert parse_rubric(rubric.text).digest == rubric.digest


def test_scores_of_a_cell_are_means_and_without_a_candidate_the_minimum() -> None:
    rubric = parse_rubric(RUBRIC)
    assert rubric.by_code
    flags = [{"right": True, "hollow": False}, {"right": False, "hollow": True}]
    assert rubric.code_scores(flags) == {"right": 0.5, "hollow": 0.5, "composite": 0.5}
    assert rubric.code_scores([])["composite"] == -1


@pytest.mark.parametrize(
    ("front", "says"),
    [
        ("flags: {a: {weight: 1}}", "flag 'a' has no check"),
        ("flags: {}", "there is no flag either"),
    ],
)
def test_without_criteria_code_must_check_every_flag(front: str, says: str) -> None:
    with pytest.raises(SuiteError, match=says):
        parse_rubric(f"---\nname: r\n{front}\n---\n")


@pytest.mark.parametrize(
    ("flag", "checks", "says"),
    [
        ("{weight: 1, check: scenario}", "", r"rubric.md:1: flag 'right' is checked by scenario, and no scenario has"),
        ("{weight: 1, check: scenario}", "{wrong: {check: number, min: 1}}", r"scenarios.yaml:\d+: .*no flag 'wrong'"),
        ("{weight: 1}", "{right: {check: number, min: 1}}", "the judge answers this flag; give it 'check: scenario'"),
        ("{weight: 1, check: scenario}", "{right: {check: scenario}}", "does not say what to check"),
        ("{weight: 1, check: scenario}", "{right: {check: regex, pattern: '('}}", "checks.right: the pattern can't be"),
        ("{weight: 1, check: regex, pattern: '['}", "", r"rubric.md:7: flag 'right': the pattern can't be used"),
    ],
)
def test_a_check_that_can_t_be_used_is_told_by_line(tmp_path: Path, flag: str, checks: str, says: str) -> None:
    folder = write_starter(tmp_path / "small")
    rubric, scenarios = folder / "rubric.md", folder / "scenarios.yaml"
    rubric.write_text(rubric.read_text().replace("flags:\n", f"flags:\n  right: {flag}\n"))
    scenarios.write_text(scenarios.read_text() + (f"  checks: {checks}\n" if checks else ""))
    with pytest.raises(SuiteError, match=says):
        load_suite(str(folder))


def test_checks_of_scenarios_are_not_declared_in_the_rubric(tmp_path: Path) -> None:
    folder = write_starter(tmp_path / "small")
    rubric = folder / "rubric.md"
    rubric.write_text(rubric.read_text().replace("flags:\n", "scenario_checks: {a: {b: {check: contract}}}\nflags:\n"))
    with pytest.raises(SuiteError, match=r"declare a scenario's checks in scenarios\.yaml"):
        load_suite(str(folder))
