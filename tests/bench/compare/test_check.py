"""The gate closes on evidence, never on a lower mean."""

import pytest

from tests.bench.compare.made_cells import RUBRIC, board, cell, persona_cells, provisional
from tipbench.bench.compare.check import CheckResult, check_against, check_row, find_row, require_evidence
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.rows import make_rows
from tipbench.core.errors import InvalidInput

BASE = [9.0, 11.0, 10.0, 12.0, 8.0, 11.0, 10.0, 9.0]


def three(good: float = 0, bad: float = 0) -> Leaderboard:
    return board(
        *persona_cells("good", "v1", [score + good for score in BASE]),
        *persona_cells("same", "v1", [11.0, 9.0, 11.0, 10.0, 10.0, 10.0, 9.0, 11.0]),
        *persona_cells("bad", "v1", [10.0 + bad, 10.0 + bad, 11.0 + bad, 9.0 + bad] * 2),
    )


def test_a_lower_mean_alone_does_not_close_the_gate() -> None:
    found = check_row(three(good=0.5), "same×v1", 0)
    assert found.outcome == "held"
    assert found.sentence == (
        "same × v1 held: a gain of -0.38 over the best other row is below the wanted +0.00, but that may be chance."
    )


def test_evidence_of_a_loss_closes_it() -> None:
    found = check_row(three(good=4, bad=-3), "bad × v1", 0)
    assert found.outcome == "lost"
    told = "bad × v1 lost: a gain of -7.00 over the best other row is below the wanted +0.00 by more than chance (p "
    assert found.sentence.startswith(told)


def test_a_wanted_gain_that_is_out_of_reach_closes_it() -> None:
    found = check_row(three(good=4), "good×v1", 0)
    says = "good × v1 held: a gain of +3.88 over the best other row, wanted +0.00."
    assert found == CheckResult("held", says, "good × v1", is_shown=True)
    assert check_row(three(good=4), "good×v1", 9).outcome == "lost"


def test_an_allowed_loss_keeps_it_open() -> None:
    board_ = three(good=4, bad=-3)
    assert check_row(board_, "bad×v1", -20).outcome == "held"


def test_what_can_t_be_told_does_not_close_it() -> None:
    few = board(*persona_cells("a", "v1", [17, 17]), *persona_cells("b", "v1", [5, 5]))
    found = check_row(few, "b×v1", 0)
    assert found.outcome == "open"
    assert "you need at least" in found.sentence
    assert found.sentence.endswith("so the gate is undecided.")
    unscored = board(*persona_cells("a", "v1", BASE), cell("s1", "b"))
    assert check_row(unscored, "b×v1", 0) == CheckResult(
        "open", "b × v1 has no scores yet, so the gate is undecided.", "b × v1"
    )


def test_a_name_that_fits_no_row_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"names no row of 'e', which has .*good × v1"):
        check_row(three(), "nobody×v1", 0)
    with pytest.raises(InvalidInput, match="write it as 'model×prompt'"):
        check_row(three(), "good", 0)


def test_a_name_that_fits_several_rows_is_refused_and_their_labels_are_taken() -> None:
    twice = board(*persona_cells("a", "v1", BASE), *persona_cells("a", "v1", BASE, digest="d2"))
    with pytest.raises(InvalidInput, match="fits several rows: 'a × v1@d"):
        find_row(twice, "a×v1")
    assert twice.rows[find_row(twice, "a × v1@d2")].prompt_digest == "d2"


def test_a_letter_x_between_spaces_will_do() -> None:
    assert find_row(three(), "good x v1") == find_row(three(), "good×v1")


def test_against_another_experiment_it_is_the_row_itself_that_counts() -> None:
    before = make_rows(persona_cells("good", "v1", [score + 3 for score in BASE]), RUBRIC)
    found = check_against(three(), "good×v1", 0, "old", before)
    assert found.outcome == "lost"
    assert "a gain of -3.00 over itself in 'old' is below the wanted +0.00 by more than chance" in found.sentence
    assert check_against(three(), "good×v1", -4, "old", before).outcome == "held"
    assert (
        check_against(three(), "same×v1", 0, "old", make_rows(persona_cells("same", "v1", BASE), RUBRIC)).outcome
        == "held"
    )


def test_a_row_that_the_other_experiment_has_not_is_refused_with_those_that_it_has() -> None:
    before = make_rows(persona_cells("other", "v1", BASE), RUBRIC)
    with pytest.raises(InvalidInput, match="'old' has no good × v1 to hold it against; it has other × v1"):
        check_against(three(), "good×v1", 0, "old", before)


def test_provisional_scores_are_called_that() -> None:
    cells = [provisional(cell(f"s{n}", model), 9 + n % 3) for model in "ab" for n in range(8)]
    assert "(provisional scores)" in check_row(board(*cells), "a×v1", 0).sentence


def test_a_row_without_scores_in_the_other_experiment_leaves_the_gate_open() -> None:
    before = make_rows([cell("p0-morning", "good"), *persona_cells("twice", "v1", BASE)], RUBRIC)
    found = check_against(three(), "good×v1", 0, "old", before)
    says = "no scenario of good × v1 has scores in 'old' too, so the gate is undecided."
    assert found == CheckResult("open", says, "good × v1")


def test_a_model_with_the_sign_in_its_name_can_be_named_as_it_stands() -> None:
    odd = board(*persona_cells("a × b", "v1", BASE), *persona_cells("c", "v1", BASE))
    assert odd.rows[find_row(odd, "a × b × v1")].model == "a × b"


def test_what_may_be_chance_is_undecided_where_evidence_is_required() -> None:
    held = check_row(three(good=0.5), "good×v1", 0)
    assert (held.outcome, held.is_shown) == ("held", False)
    found = require_evidence(held)
    assert found.outcome == "open"
    assert found.sentence.startswith("too little is known about good × v1: a gain of +0.38 over the best other row")
    assert found.sentence.endswith("; that it gained as much as was wanted is not shown.")


def test_evidence_is_a_gain_that_chance_does_not_explain() -> None:
    shown = check_row(three(good=4), "good×v1", 0)
    assert require_evidence(shown) == shown
    assert shown.is_shown
    tolerant = check_row(three(), "same×v1", -6)
    assert tolerant.is_shown, "it is shown to be at most 6 points behind"
    lost = check_row(three(good=4, bad=-3), "bad × v1", 0)
    assert require_evidence(lost) == lost


def test_provisional_scores_are_no_evidence() -> None:
    rules = board(
        *(provisional(cell(f"s{n}", model), score) for n in range(8) for model, score in (("a", 17.0), ("b", 5.0)))
    )
    found = require_evidence(check_row(rules, "a×v1", 0))
    assert found.outcome == "open"
