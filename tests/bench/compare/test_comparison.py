"""The top group says what the scores can tell, and says so where they can tell nothing."""

import random
import time
from dataclasses import replace

import pytest

from tests.bench.compare.made_cells import board, cell, counted, empty, failed, persona_cells
from tipbench.bench.compare.check import check_row
from tipbench.bench.compare.inference import score_table
from tipbench.bench.compare.messages import as_data, as_description, as_markdown, verdict
from tipbench.bench.records import StoredCell
from tipbench.statistics.top_group import top_group
from tipbench.statistics.units import paired
from tipbench.statistics.winner import LEVEL as WINNER_LEVEL

MODELS = ("qwen2.5:0.5b", "qwen2.5:1.5b", "gemma3:1b", "llama3.2:3b")
PROMPTS = ("v1", "v2-mentor", "v3-few-shot")


def grid(scenarios: int, lift: dict[tuple[str, str], float] | None = None, seed: int = 0) -> list[StoredCell]:
    """Four models × three prompts around a composite of 10, some rows lifted above the rest."""
    drawn = random.Random(seed)
    return [
        one
        for model in MODELS
        for prompt in PROMPTS
        for one in persona_cells(
            model,
            prompt,
            [min(17, 10 + drawn.choice((-1, 0, 1)) + (lift or {}).get((model, prompt), 0)) for _ in range(scenarios)],
        )
    ]


def test_the_reference_grid_of_48_cells_shuts_out_what_is_far_behind() -> None:
    lift = {("qwen2.5:1.5b", "v3-few-shot"): 5.0, ("qwen2.5:0.5b", "v1"): -4.0}
    found = board(*grid(4, lift))
    assert (found.comparison.unit, found.comparison.units, len(found.comparison.scenarios)) == ("persona", 2, 4)
    best, worst = found.rows[0], found.rows[-1]
    assert (best.model, best.prompt) == ("qwen2.5:1.5b", "v3-few-shot")
    assert best in found.top
    assert worst not in found.top
    assert verdict(found)[0].startswith(f"On 4 scenarios of 2 personas, {len(found.top)} of 12 rows may be the best")
    assert found.comparison.needed is None, "two personas tell next to nothing about the scatter"


def test_eight_scenarios_can_name_a_winner() -> None:
    found = board(*grid(8, {("qwen2.5:1.5b", "v3-few-shot"): 5}))
    assert verdict(found) == ["On 8 scenarios of 4 personas, qwen2.5:1.5b × v3-few-shot is the best of 12 rows."]


def test_rows_that_are_about_equal_are_all_in_the_top_group() -> None:
    found = board(*grid(8))
    assert len(found.top) == 12
    assert verdict(found)[0] == (
        "On 8 scenarios of 4 personas, no row is shown to be better than another: all 12 may be the best."
    )
    assert sum(one.rank.p_best or 0 for one in found.rows if one.rank) == pytest.approx(1)


def test_a_row_far_behind_is_shut_out_and_the_rest_is_not() -> None:
    found = board(*grid(8, {("gemma3:1b", "v1"): -4}))
    out = [one for one in found.rows if one not in found.top]
    assert [(one.model, one.prompt) for one in out] == [("gemma3:1b", "v1")]
    assert out[0].rank
    assert out[0].rank.p_top
    assert out[0].rank.p_top <= found.comparison.level


def test_equal_scores_everywhere_tell_nothing_and_break_nothing() -> None:
    cells = [one for model in MODELS for one in persona_cells(model, "v1", [9] * 8)]
    found = board(*cells)
    assert len(found.top) == 4
    assert [one.rank and one.rank.p_best for one in found.rows] == pytest.approx([0.25] * 4)
    assert found.comparison.needed
    assert found.comparison.needed.more_units is None
    assert "have the same mean there, so there is no gap to separate" in verdict(found)[1]
    low, high = found.rows[0].intervals["composite"]
    assert 2 < low < 9 < high < 17


def test_one_scenario_tells_nothing_apart_and_says_what_it_takes() -> None:
    found = board(*(counted(cell("s1", model), score) for model, score in zip(MODELS, (5, 8, 11, 17), strict=True)))
    assert not found.comparison.separable
    assert found.top == ()
    assert {(one.rank.top, one.rank.p_best) for one in found.rows if one.rank} == {(None, None)}
    assert "Too few scenarios to compare 4 variants: you have 1, you need at least 3." in verdict(found)
    assert found.rows[0].intervals["composite"].low < 5


def test_two_rows_on_four_personas_are_told_apart_by_scenario_and_it_is_said() -> None:
    cells = persona_cells("a", "v1", [15, 14] * 4) + persona_cells("b", "v1", [8, 9] * 4)
    found = board(*cells)
    assert [one.model for one in found.top] == ["a"]
    assert found.comparison.unit == "scenario"
    assert verdict(found) == [
        "For these 4 personas, on 8 scenarios, a × v1 is the best of 2 rows.",
        "Whether that holds for other personas, 4 can't tell: it takes 6.",
    ]


def test_a_row_that_beats_every_other_one_overrules_the_top_group() -> None:
    found = board(*grid(24, {("qwen2.5:1.5b", "v3-few-shot"): 0.7}))
    shared = found.comparison.scenarios
    group = top_group(paired(score_table(found.grid.rows, shared), found.grid.units_of(shared)))
    assert group.members.sum() == 10, "it alone would leave it open"
    best, rival = found.rows[:2]
    assert found.top == (best,)
    assert (found.comparison.winner, found.answer.verdict) == (0, "winner")
    assert found.comparison.winner_p
    assert found.comparison.winner_p == max(one.rank.p_top for one in found.rows[1:] if one.rank and one.rank.p_top)
    assert found.comparison.winner_p <= WINNER_LEVEL < found.comparison.level
    assert verdict(found) == [
        "On 24 scenarios of 12 personas, qwen2.5:1.5b × v3-few-shot is the best of 12 rows: it beats each of the "
        "others by more than chance explains, compared persona by persona (weakest pair: p = 0.024)."
    ]
    assert "It beats each of the others by more than chance explains, compared persona by persona." in found.answer.says
    data = as_data(found)
    assert data["comparison"]["winner"]["model"] == best.model
    assert data["comparison"]["winner"]["p"] == found.comparison.winner_p
    assert data["comparison"]["needed"]["more_units"] == 0
    assert [line["top"] for line in data["standings"]] == [True, *[False] * 11]
    assert as_markdown(found).count("| ● |") == as_description(found).count("| ● |") == 1
    assert check_row(found, f"{rival.model}×{rival.prompt}", 0).outcome == "lost"
    assert check_row(found, f"{best.model}×{best.prompt}", 0).outcome == "held"


@pytest.mark.parametrize("scenarios", [8, 10])
def test_scenarios_never_stand_in_for_personas_in_the_test_of_the_leader(scenarios: int) -> None:
    """Eight scenarios that all favour one of two rows would do, if they were of as many personas."""
    cells = persona_cells("a", "v1", [15.0, 14.0] * (scenarios // 2)) + persona_cells(
        "b", "v1", [8.0, 9.0] * (scenarios // 2)
    )
    found = board(*cells)
    assert (found.comparison.winner, found.comparison.winner_p) == (None, None)
    assert as_data(found)["comparison"]["winner"] is None
    assert "beats" not in " ".join([found.answer.says, *verdict(found)])
    apart = board(*(replace(one, cluster=None) for one in cells))
    assert apart.comparison.winner == 0
    assert apart.comparison.winner_p == pytest.approx(2.0 ** (1 - scenarios))
    assert "It beats the other by more than chance explains, compared scenario by scenario." in apart.answer.says


def test_a_single_row_has_nothing_to_be_compared_with() -> None:
    found = board(*persona_cells("a", "v1", [9, 10, 11, 12]))
    assert found.rows[0].rank is None
    assert verdict(found) == ["There is nothing to compare: fewer than two rows have scores."]
    assert found.rows[0].intervals["composite"].low < 10.5 < found.rows[0].intervals["composite"].high


def test_an_experiment_in_which_everything_failed_is_a_table_of_failures() -> None:
    found = board(*(failed(cell(f"s{n}", model)) for model in MODELS for n in range(3)))
    assert [(one.failed, one.composite, one.rank) for one in found.rows] == [(3, None, None)] * 4
    assert (found.failed, found.gaps) == (12, 12)
    assert found.rows[0].extremes == (2.0, 17.0)


def test_a_missing_cell_takes_its_scenario_out_of_the_comparison_and_widens_the_bounds() -> None:
    cells = grid(8)
    gone = next(one for one in cells if (one.model, one.prompt) == ("gemma3:1b", "v1"))
    found = board(*(one for one in cells if one is not gone))
    assert len(found.comparison.scenarios) == 7
    assert gone.scenario not in found.comparison.scenarios
    assert any("compared on the 7 of 8 scenarios" in line for line in verdict(found))
    row = next(one for one in found.rows if (one.model, one.prompt) == ("gemma3:1b", "v1"))
    assert row.missing == 1
    assert row.composite
    assert row.extremes == pytest.approx(((7 * row.composite + 2) / 8, (7 * row.composite + 17) / 8))


def test_a_row_with_few_scores_does_not_take_the_rest_down_with_it() -> None:
    cells = grid(8) + persona_cells("newcomer", "v1", [17, 17])
    found = board(*cells)
    assert len(found.comparison.scenarios) == 8
    newcomer = next(one for one in found.rows if one.model == "newcomer")
    assert newcomer.rank is None
    assert found.rows[-1] is newcomer, "what was not compared stands last, whatever its mean"
    assert not newcomer.on_front
    note = "Scores on fewer than half of the scenarios, too few to be compared: newcomer × v1."
    assert note in verdict(found)


def test_failed_and_pending_cells_bound_the_mean_from_both_sides() -> None:
    cells = [counted(cell("s1"), 10), counted(cell("s1", repeat=1), 12), cell("s1", repeat=2), failed(cell("s2"))]
    (row,) = board(*cells).rows
    assert row.composite == 11
    assert row.extremes == pytest.approx((((22 + 2) / 3 + 2) / 2, ((22 + 17) / 3 + 17) / 2))


def test_without_gaps_the_bounds_are_the_mean() -> None:
    (row,) = board(counted(cell("s1"), 10), empty(cell("s2"))).rows
    assert row.extremes == pytest.approx((6, 6))


def test_scenarios_of_unknown_clusters_stand_for_themselves() -> None:
    cells = [replace(one, cluster=None) for one in grid(8)]
    found = board(*cells)
    assert (found.comparison.unit, found.comparison.units) == ("scenario", 8)


def test_what_it_would_take_shrinks_with_the_gap() -> None:
    def needed(gap: float) -> float:
        scores = [9, 10, 8, 11, 9, 8, 10, 9]
        found = board(
            *persona_cells("a", "v1", [score + gap for score in scores]),
            *persona_cells("b", "v1", [9, 9, 10, 8, 11, 9, 9, 9]),
            *persona_cells("c", "v1", [7, 8, 9, 9, 8, 7, 9, 8]),
        )
        assert found.comparison.needed
        assert found.comparison.needed.more_scenarios is not None
        return found.comparison.needed.more_scenarios

    assert needed(0.25) > needed(0.5) > needed(1) > needed(6) == 0


def test_the_answer_does_not_depend_on_the_order_of_the_cells() -> None:
    cells = grid(8, {("gemma3:1b", "v1"): 2})
    expected = board(*cells)
    for seed in range(3):
        random.Random(seed).shuffle(cells)
        assert board(*cells) == expected


def test_rows_stand_in_the_order_of_the_scenarios_they_are_compared_on() -> None:
    cells = [
        *persona_cells("a", "v1", [9, 9, 9, 9, 9, 9, 9, 17]),
        *persona_cells("b", "v1", [10, 10, 10, 10, 10, 10, 10, 5]),
        *persona_cells("c", "v1", [8, 8, 8, 8, 8, 8, 8]),
    ]
    found = board(*cells)
    assert [one.model for one in found.rows] == ["b", "a", "c"]
    assert [one.composite for one in found.rows] == pytest.approx([9.375, 10, 8])


def test_cells_from_before_there_were_clusters_don_t_split_the_personas() -> None:
    cells = [replace(one, cluster=None) if number % 3 else one for number, one in enumerate(grid(8))]
    found = board(*cells)
    assert (found.comparison.unit, found.comparison.units) == ("persona", 4)


def test_scenarios_that_belong_together_by_different_factors_are_groups() -> None:
    cells = [replace(one, cluster="time_slot") if one.scenario.startswith("p3") else one for one in grid(8)]
    found = board(*cells)
    assert (found.comparison.unit, found.comparison.units) == ("group", 5)


def test_two_hundred_rows_are_compared_in_reasonable_time() -> None:
    drawn = random.Random(4)
    cells = [
        one
        for number in range(200)
        for one in persona_cells(f"m{number:03}", "v1", [9 + drawn.choice((-1, 0, 1)) for _ in range(8)])
    ]
    started = time.monotonic()
    assert len(board(*cells).rows) == 200
    assert time.monotonic() - started < 30
