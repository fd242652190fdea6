"""The leaderboard is honest: what counts is kept apart from what doesn't, and nothing is left out in silence."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.compare.made_cells import board, cell, counted, empty, failed, provisional
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.records import StoredCell


def only(*cells: StoredCell) -> LeaderboardRow:
    (standing,) = board(*cells).rows
    return standing


def counts(standing: LeaderboardRow) -> Mapping[str, int]:
    return {name: getattr(standing, name) for name in ("scored", "judged", "pending", "failed", "empty")}


def test_the_best_composite_stands_first_and_the_unscored_last() -> None:
    found = board(
        cell(model="c"), counted(cell(model="a"), 9), counted(cell(model="b"), 12), counted(cell(model="d"), 9)
    )
    assert [(standing.model, standing.composite) for standing in found.rows] == [
        ("b", 12),
        ("a", 9),
        ("d", 9),
        ("c", None),
    ]


def test_rows_are_means_over_the_scenarios() -> None:
    standing = only(counted(cell("s1"), 10), counted(cell("s2"), 13))
    third = (8 / 3 + 11 / 3) / 2
    expected = {"relevance": third, "actionability": third, "tone": third, "format_ok": 1.0, "overlong": 0.0}
    assert standing.means == pytest.approx({**expected, "composite": 11.5})


def test_repeats_are_averaged_within_their_scenario() -> None:
    standing = only(counted(cell("s1"), 8), counted(cell("s1", repeat=1), 10), counted(cell("s2"), 15))
    assert standing.composite == pytest.approx((9 + 15) / 2)
    assert standing.scored == 3


def test_two_texts_of_a_prompt_are_never_averaged_together() -> None:
    found = board(counted(cell(digest="d1"), 10), counted(cell(digest="d2"), 14))
    assert [(standing.prompt_digest, standing.composite) for standing in found.rows] == [("d2", 14), ("d1", 10)]


def test_failed_pending_and_judged_cells_are_all_counted() -> None:
    standing = only(counted(cell("s1"), 10), cell("s2"), cell("s3"), failed(cell("s4")), empty(cell("s5")))
    assert counts(standing) == {"scored": 2, "judged": 2, "pending": 2, "failed": 1, "empty": 1}
    assert standing.cells == 5


def test_a_failed_cell_is_missing_and_does_not_lower_the_mean() -> None:
    assert only(counted(cell("s1"), 10), failed(cell("s2"))).composite == 10


def test_an_empty_answer_scores_the_rubrics_minimum() -> None:
    standing = only(counted(cell("s1"), 10), empty(cell("s2")))
    assert standing.composite == (10 + 2) / 2
    assert standing.means["overlong"] == 0.5


def test_an_empty_answer_takes_the_minimum_of_the_rubric_in_use() -> None:
    assert only(counted(cell("s1"), 10), empty(cell("s2"), rubric="older")).composite == 6


def test_without_a_counted_score_the_provisional_ones_are_shown_as_such() -> None:
    found = board(provisional(cell("s1"), 9), provisional(cell("s2"), 11), empty(cell("s3")))
    assert found.provisional
    assert found.judges == ("lexical",)
    assert found.rows[0].composite == pytest.approx((9 + 11 + 2) / 3)
    assert counts(found.rows[0]) == {"scored": 3, "judged": 1, "pending": 2, "failed": 0, "empty": 1}


def test_one_counted_score_puts_all_provisional_ones_aside() -> None:
    found = board(
        counted(provisional(cell("s1", model="a"), 3), 10),
        provisional(cell("s2", model="a"), 17),
        provisional(cell("s1", model="b"), 17),
    )
    assert not found.provisional
    assert found.judges == ("agent",)
    assert [(standing.model, standing.composite, standing.scored) for standing in found.rows] == [
        ("a", 10, 1),
        ("b", None, 0),
    ]
    assert (found.judged, found.pending) == (1, 2)


def test_a_minimum_by_rule_is_no_judges_score() -> None:
    found = board(empty(cell("s1")), provisional(cell("s2"), 12))
    assert found.provisional
    assert found.judges == ("lexical",)


def test_scores_by_another_rubric_count_as_pending_and_are_mentioned() -> None:
    found = board(counted(cell("s1"), 10), counted(cell("s2"), 17, rubric="older"))
    assert found.rows[0].composite == 10
    assert (found.judged, found.pending, found.other_rubrics) == (1, 1, 1)


def test_provisional_scores_by_another_rubric_are_not_shown() -> None:
    found = board(provisional(cell("s1"), 10, rubric="older"))
    assert found.rows[0].composite is None
    assert found.judges == ()


def test_nothing_at_all_is_an_empty_leaderboard() -> None:
    found = board()
    assert (found.rows, found.judged, found.pending, found.failed) == ((), 0, 0, 0)


def test_times_and_diversity_are_means_over_the_answers_that_have_them() -> None:
    first = replace(cell("s1"), metrics={"gen/generate_s": 2.0, "answer/diversity": 0.5, "gen/output_tokens": 30.0})
    second = replace(cell("s2"), metrics={"gen/generate_s": 4.0})
    standing = only(first, second, failed(cell("s3")))
    assert (standing.cost.generate_s, standing.diversity, standing.cost.output_tokens) == (3.0, 0.5, 30.0)


KINDS = st.sampled_from(["counted", "provisional", "pending", "empty", "failed", "other"])


def made(kind: str, found: StoredCell, composite: float) -> StoredCell:
    if kind == "counted":
        return counted(found, composite)
    if kind == "other":
        return counted(found, composite, rubric="older")
    if kind == "provisional":
        return provisional(found, composite)
    return {"empty": empty(found), "failed": failed(found), "pending": found}[kind]


@settings(deadline=None, max_examples=60)
@given(
    chosen=st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["v1", "v2"]), st.sampled_from("xyz"), st.integers(0, 1)),
        st.tuples(KINDS, st.integers(15, 51).map(lambda whole: whole / 3)),
    ),
    seed=st.integers(0, 99),
)
def test_the_order_of_the_cells_does_not_matter_and_each_is_counted_once(
    chosen: dict[tuple[str, str, str, int], tuple[str, float]], seed: int
) -> None:
    cells = [
        made(kind, cell(scenario, model, prompt, repeat), composite)
        for (model, prompt, scenario, repeat), (kind, composite) in chosen.items()
    ]
    found = board(*cells)
    random.Random(seed).shuffle(cells)
    assert board(*cells) == found
    assert found.judged + found.pending + found.failed == len(cells)
    assert found.provisional == all(kind != "counted" for kind, _ in chosen.values())


def test_cells_that_were_asked_in_another_way_are_no_repeats() -> None:
    cold, hot = (
        replace(counted(cell(), score), settings={"temperature": t}) for score, t in ((10, "0.2"), (14, "1.2"))
    )
    found = board(cold, hot)
    assert [(row.settings["temperature"], row.composite) for row in found.rows] == [("1.2", 14), ("0.2", 10)]


def test_an_empty_answer_of_an_older_rubric_is_judged_by_rule_and_not_by_another_rubric() -> None:
    found = board(counted(cell("s1"), 10), empty(cell("s2"), rubric="older"))
    assert (found.judged, found.pending, found.other_rubrics) == (2, 0, 0)
