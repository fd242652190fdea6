"""What a leaderboard says in sentences, and how it names its rows."""

from dataclasses import replace

from tests.bench.compare.made_cells import RUBRIC, board, cell, counted, empty, failed, persona_cells, provisional
from tipbench.bench.compare.leaderboard import prompt_label
from tipbench.bench.compare.messages import headline, percent, verdict, warnings
from tipbench.bench.records import JudgeNote

BASE = [9.0, 11.0, 10.0, 12.0, 8.0, 11.0, 10.0, 9.0]


def test_the_headline_names_the_judges_the_rubric_and_all_counts() -> None:
    found = replace(board(counted(cell("s1"), 9), cell("s2"), failed(cell("s3"))), kappas={"agent": {"tone": 0.876}})
    assert headline(found) == "Judged by agent (κ 0.88) against tip-v1: 1 cells judged, 1 pending, 1 failed."


def test_a_judge_without_anchors_is_not_assessable() -> None:
    assert "agent (κ not assessable)" in headline(board(counted(cell("s1"), 9)))


def test_provisional_figures_are_called_that() -> None:
    assert headline(board(provisional(cell("s1"), 9))).startswith("PROVISIONAL: scored by rules, lexical")


def test_an_unjudged_experiment_says_so() -> None:
    found = board(cell("s1"), failed(cell("s2")))
    assert headline(found) == "No judge has scored anything yet: 0 cells judged, 1 pending, 1 failed."


def test_empty_answers_are_no_judges() -> None:
    found = board(empty(cell("s1")), empty(cell("s2")), cell("s3"))
    assert headline(found) == (
        "No judge has scored anything yet: 0 cells judged, 1 pending, 0 failed, 2 without a usable candidate, which "
        "score the minimum."
    )


def test_scores_in_quarantine_are_called_that() -> None:
    drifted = replace(cell("s1"), judges=(JudgeNote("lena", RUBRIC.digest, "b1", provisional=False, counted=False),))
    quarantine = "the scores of lena (1 cell) are on hold and don't count ('tipbench judge --status' says why)"
    counts = "0 cells judged, 1 pending, 0 failed"
    assert headline(board(drifted)) == f"No judge's scores count yet; {quarantine}: {counts}."
    by_rules = headline(board(drifted, provisional(cell("s2"), 9)))
    assert by_rules.startswith(f"PROVISIONAL: scored by rules, lexical (κ not assessable), {quarantine}: ")
    beside = headline(board(drifted, counted(cell("s2"), 9)))
    assert beside.endswith(f"1 cells judged, 1 pending, 0 failed. T{quarantine[1:]}.")
    again = replace(counted(cell("s1"), 9), judges=(*drifted.judges, *counted(cell("s1"), 9).judges))
    assert "quarantine" not in headline(board(again))


def test_a_long_top_group_is_cut_short() -> None:
    rows = [one for name in "abcdefg" for one in persona_cells(name, "v1", BASE)]
    found = board(*rows, *persona_cells("z", "v1", [5.0] * 8))
    assert verdict(found)[0] == (
        "On 8 scenarios of 4 personas, 7 of 8 rows may be the best: a × v1, b × v1, c × v1 and 4 more, marked ●."
    )


def test_gaps_are_warned_of_where_somebody_judged() -> None:
    found = board(counted(cell("s1"), 9), cell("s2"))
    assert warnings(found) == [
        "1 cell without a score: with all of them, a row's mean may lie anywhere between 'if worst' and 'if best'."
    ]
    assert warnings(board(cell("s1"))) == []


def test_rows_on_different_scenarios_and_other_rubrics_are_warned_of() -> None:
    found = board(counted(cell("s1", "a"), 9), counted(cell("s2", "b"), 9), counted(cell("s3", "b"), 9, rubric="older"))
    text = " ".join(warnings(found))
    assert "scored on different scenarios" in text
    assert "1 cells are scored by another rubric" in text


def test_a_prompt_with_two_texts_shows_which_is_which() -> None:
    first, other = counted(cell(digest="d" * 64), 9), counted(cell(digest="e" * 64), 8)
    assert prompt_label(board(first), board(first).rows[0]) == "v1"
    both = board(first, other)
    assert [prompt_label(both, one) for one in both.rows] == ["v1@dddddddddddd", "v1@eeeeeeeeeeee"]


def test_rows_that_were_asked_in_another_way_are_told_apart() -> None:
    cold, hot = (replace(counted(cell(), 9), settings={"temperature": t, "n_tips": "5"}) for t in ("0.7", "1.2"))
    found = board(cold, hot, counted(cell(model="n"), 5))
    assert [prompt_label(found, one) for one in found.rows] == [
        "v1 (temperature=0.7)",
        "v1 (temperature=1.2)",
        "v1",
    ]


def test_a_probability_is_never_rounded_to_a_certainty() -> None:
    assert [percent(share) for share in (0.0, 0.004, 0.5, 0.996, 1.0, None)] == [
        "<1 %",
        "<1 %",
        "50 %",
        ">99 %",
        ">99 %",
        "–",
    ]
