"""Two experiments, cell by cell."""

from dataclasses import replace

import pytest

from tests.bench.compare.made_cells import RUBRIC, cell, counted, persona_cells, provisional
from tipbench.bench.compare.against import ExperimentComparison, against_headline, compare_against
from tipbench.bench.compare.rows import make_rows
from tipbench.bench.records import StoredCell
from tipbench.core.errors import InvalidInput

BASE = [9.0, 12.0, 10.0, 14.0, 8.0, 11.0, 13.0, 9.0]


def against(now: list[StoredCell], before: list[StoredCell]) -> ExperimentComparison:
    return compare_against("new", make_rows(now, RUBRIC), "old", make_rows(before, RUBRIC))


def lifted(by: float) -> list[float]:
    return [min(17.0, score + by + (0.5 if place % 2 else 0)) for place, score in enumerate(BASE)]


def test_what_changed_by_more_than_chance_is_told_from_what_may_be_chance() -> None:
    before = [*persona_cells("a", "v1", BASE), *persona_cells("b", "v1", BASE), *persona_cells("c", "v1", BASE)]
    now = [
        *persona_cells("a", "v1", lifted(2)),
        *persona_cells("b", "v1", [score + (1 if place % 2 else -1) for place, score in enumerate(BASE)]),
        *persona_cells("c", "v1", lifted(-2.5)),
    ]
    found = against(now, before)
    assert [(one.model, one.verdict) for one in found.changes] == [
        ("a", "better"),
        ("b", "may be chance"),
        ("c", "worse"),
    ]
    a = found.changes[0]
    assert a.low is not None
    assert a.high is not None
    assert 0 < a.low < a.change < a.high
    assert a.change == pytest.approx(2.25)
    assert (found.unit, found.units) == ("scenario", 8)
    assert found.notes == ("The verdicts hold for these 4 personas; to tell whether they hold for others takes 6.",)


def test_enough_personas_are_the_units() -> None:
    many = [10.0, 11.0] * 8
    found = against(persona_cells("a", "v1", [score + 2 for score in many]), persona_cells("a", "v1", many))
    assert (found.unit, found.units, found.changes[0].verdict) == ("persona", 8, "better")
    assert found.notes == ()


def test_a_changed_prompt_text_is_compared_and_named() -> None:
    found = against(persona_cells("a", "v1", BASE, digest="d2"), persona_cells("a", "v1", BASE))
    assert [(one.prompt_changed, one.verdict) for one in found.changes] == [(True, "may be chance")]


def test_rows_of_one_experiment_alone_are_named() -> None:
    found = against([*persona_cells("a", "v1", BASE), *persona_cells("b", "v1", BASE)], persona_cells("a", "v1", BASE))
    assert "Only in 'new': b × v1." in found.notes


def test_too_few_scenarios_give_means_and_no_claim() -> None:
    found = against(persona_cells("a", "v1", [15, 15, 15, 15]), persona_cells("a", "v1", [5, 5, 5, 5]))
    assert [(one.change, one.verdict, one.low) for one in found.changes] == [(10, "can't be told", None)]
    assert found.notes == ("It takes 6 scenarios to tell a change from chance, whatever the scores are.",)


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no \\(model, prompt\\) that was scored on the same scenario"):
        against(persona_cells("a", "v1", BASE), persona_cells("b", "v1", BASE))


def test_provisional_scores_are_not_held_against_counted_ones() -> None:
    with pytest.raises(InvalidInput, match="the scores of 'old' are provisional"):
        against([counted(cell("s1"), 9)], [provisional(cell("s1"), 9)])


def test_a_row_that_is_there_twice_is_refused() -> None:
    twice = persona_cells("a", "v1", BASE) + persona_cells("a", "v1", BASE, digest="d2")
    with pytest.raises(InvalidInput, match="a × v1 with several prompt texts"):
        against(twice, persona_cells("a", "v1", BASE))


def test_rows_that_were_asked_in_other_ways_are_not_held_against_each_other() -> None:
    warm = [replace(one, settings={"temperature": "1.2"}) for one in persona_cells("a", "v1", BASE)]
    with pytest.raises(InvalidInput, match="no \\(model, prompt\\)"):
        against(warm, persona_cells("a", "v1", BASE))


def test_each_row_is_compared_on_its_own_scenarios() -> None:
    many = [10.0, 11.0] * 4
    now = [*persona_cells("a", "v1", [score + 2 for score in many]), *persona_cells("b", "v1", many)[:6]]
    before = [*persona_cells("a", "v1", many), *persona_cells("b", "v1", many)]
    found = against(now, before)
    assert [(one.model, one.scenarios, one.change) for one in found.changes] == [("a", 8, 2), ("b", 6, 0)]
    assert "Each row is compared on the scenarios that it has scores on in both, of 8." in found.notes
    assert found.changes[0].verdict == "better"


def test_an_experiment_is_not_compared_with_itself() -> None:
    rows = make_rows(persona_cells("a", "v1", BASE), RUBRIC)
    with pytest.raises(InvalidInput, match="names 'same' itself"):
        compare_against("same", rows, "same", rows)


def test_rows_without_scores_on_the_other_side_and_other_judges_are_named() -> None:
    now = [*persona_cells("a", "v1", BASE), *persona_cells("b", "v1", BASE)]
    before = [counted(replace(one, metrics={}, judges=()), 9, judge="mild") for one in persona_cells("a", "v1", BASE)]
    waiting = [cell(one.scenario, "b", "v1", factors=one.factors) for one in persona_cells("b", "v1", BASE)]
    found = against(now, before + waiting)
    assert [one.model for one in found.changes] == ["a"]
    assert "Not compared, because no scenario has scores in both: b × v1." in found.notes
    assert "Other judges, who may be milder or stricter: agent in 'new', mild in 'old'." in found.notes


def test_provisional_scores_on_both_sides_are_called_that() -> None:
    now, before = ([provisional(cell(f"s{n}"), 9 + n % 3 + up) for n in range(8)] for up in (0, 1))
    found = against(now, before)
    assert found.provisional
    assert against_headline(found).startswith("PROVISIONAL")


def test_a_difference_that_is_always_the_same_is_no_certainty() -> None:
    found = against(persona_cells("a", "v1", [score - 2 for score in BASE]), persona_cells("a", "v1", BASE)).changes[0]
    assert found.low is not None
    assert found.high is not None
    assert found.low < -2.3 < -1.7 < found.high < 0
