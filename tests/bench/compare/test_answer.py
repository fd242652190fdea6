"""The answer: what the scores decide and what to do next, never at odds with the columns or the JSON."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.compare.made_cells import RUBRIC, board, cell, counted, empty, failed, persona_cells, provisional
from tipbench.bench.compare.answer import PRACTICALLY_EQUAL, is_practically_equal
from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard, row_label
from tipbench.bench.compare.messages import as_data, as_markdown, hidden_provisional
from tipbench.bench.records import JudgeNote, StoredCell


def rows(*means: float, units: int = 8, spread: float = 0.5, seed: int = 1) -> list[StoredCell]:
    """One variant a mean, each on so many personas of two scenarios, with some scatter."""
    drawn = random.Random(seed)
    return [
        one
        for number, mean in enumerate(means)
        for one in persona_cells(
            f"m{number}", "v1", [min(17, max(5, mean + spread * drawn.uniform(-1, 1))) for _ in range(2 * units)]
        )
    ]


def waiting(cells: list[StoredCell], count: int) -> list[StoredCell]:
    """The last cells of each variant are not judged yet."""
    by_model: dict[str, list[StoredCell]] = {}
    for one in cells:
        by_model.setdefault(one.model, []).append(one)
    return [
        one if number < len(found) - count else cell(one.scenario, one.model, factors=one.factors)
        for found in by_model.values()
        for number, one in enumerate(found)
    ]


def test_a_clear_winner_is_shipped() -> None:
    answer = board(*rows(14, 9, 8)).answer
    assert answer.verdict == "winner"
    assert re.match(r"m0 × v1 is the best of 3 variants: 1[34]\.\d\d \(", answer.says)
    assert re.search(r"The runner-up is m1 × v1 with (8|9)\.\d\d \(", answer.says)
    assert str(answer.next).startswith(
        "ship m0 × v1, after a look at its weakest texts: tipbench compare --experiment e"
    )
    assert answer.next.judgements == 0


def test_two_that_hardly_differ_are_practically_equal_and_cost_decides() -> None:
    answer = board(*rows(10, 10, 6, units=16, spread=0.2)).answer
    assert answer.verdict == "open"
    assert answer.says.startswith("2 of 3 variants are practically equal: ")
    assert answer.expected_loss is not None
    assert answer.expected_loss <= PRACTICALLY_EQUAL
    assert answer.next.text.startswith("choose by cost")


def test_what_is_undecided_says_what_picking_costs_and_what_more_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipbench.bench.suites.load.pool_of", lambda _: None)
    answer = board(*rows(11, 9.5, 9.5, units=8, spread=5)).answer
    assert answer.verdict == "open"
    assert answer.says.startswith("Undecided: 3 of 3 variants may be the best. m")
    assert "picking it now is expected to lose about " in answer.says
    assert answer.says.endswith("points, possibly twice that.")
    assert answer.next.judgements
    assert answer.next.text.startswith("judge about ")


def test_where_a_suite_has_a_pool_a_decision_takes_fewer_judgements() -> None:
    undecided = board(*rows(11, 10, 9.5, units=8, spread=5)).answer
    assert undecided.next.command is not None
    assert undecided.next.command.startswith("tipbench decide --suite tip-pool --models m")
    assert undecided.next.text.startswith(
        "decide it in rounds on the scenarios of tip-pool: about 300 judgements, 3 h 45"
    )
    assert undecided.next.judgements == 300


def test_what_waits_for_a_judge_is_judged_first() -> None:
    answer = board(*waiting(rows(10, 9.5, 9.5, units=8, spread=5), 5)).answer
    assert answer.next.text == "judge 15 cells, about 11 min 15 s"
    assert answer.next.command == "tipbench judge --experiment e --export judge.json --sample 1"
    assert answer.next.judgements == 15


def test_too_few_scenarios_say_how_many_it_takes() -> None:
    answer = board(
        *(counted(cell("s1", model), score) for model, score in (("a", 12), ("b", 9), ("c", 8), ("d", 7)))
    ).answer
    assert answer.verdict == "too_little"
    assert answer.says == "Too few scenarios to compare 4 variants: you have 1, you need at least 3."
    assert answer.next.judgements == 8


def test_provisional_scores_beside_counted_ones_are_announced_and_can_be_seen() -> None:
    cells = [provisional(one, 12) for one in waiting(rows(10, 9), 5)]
    assert board(*cells).answer.verdict != "too_little"
    said = hidden_provisional(board(*cells))
    assert said.startswith("Not shown: provisional scores by 'lexical' (32 cells)")
    assert "'tipbench compare --experiment e --provisional'" in said
    assert said in as_data(board(*cells))["says"]
    shown = leaderboard("e", cells, RUBRIC, {}, provisional=True)
    assert [row.composite for row in shown.rows] == [12, 12]
    assert shown.answer.verdict == "too_little"
    assert shown.answer.says.startswith("No answer from these: scores come from simple rules")
    assert shown.answer.next.command == "tipbench compare --experiment e"
    assert not hidden_provisional(shown)
    assert not hidden_provisional(board(*rows(10, 9)))


def test_judges_who_disagree_are_the_first_thing_to_settle() -> None:
    def by_two(one: StoredCell, second: float) -> StoredCell:
        composite = one.metrics["composite"]
        scored = {"judge/agent/composite": composite, "judge/lena/composite": second}
        note = JudgeNote("lena", RUBRIC.digest, "batch-2", provisional=False)
        return replace(one, metrics={**one.metrics, **scored}, judges=(*one.judges, note))

    cells = rows(14, 9)
    opposed = board(*(by_two(one, 22 - one.metrics["composite"]) for one in cells))
    assert opposed.judges_disagree
    assert opposed.answer.says.endswith("so don't rely on this yet.")
    assert opposed.answer.next.command == "tipbench judge --experiment e --status"
    agreed = board(*(by_two(one, one.metrics["composite"]) for one in cells))
    assert agreed.agreement == 1
    assert agreed.answer.next.text.startswith("ship ")
    assert board(*cells).agreement is None


def test_all_failed() -> None:
    answer = board(*(failed(cell(f"s{number}")) for number in range(3))).answer
    assert (answer.verdict, answer.leader, answer.expected_loss) == ("too_little", None, None)
    assert answer.says == "No answer yet: all 3 cells failed, the first with: timed out."
    assert answer.next.text.endswith("run the same 'tipbench collect' again with --retry-failed")


def test_nothing_judged() -> None:
    answer = board(*(cell(f"s{number}", model) for number in range(2) for model in "ab")).answer
    assert answer.says == "No answer yet: nothing is judged."
    assert answer.next.text == "judge 4 cells, about 3 min"


def test_empty_answers_alone_are_no_scores() -> None:
    answer = board(empty(cell("s1")), cell("s2"), cell("s1", "other")).answer
    assert answer.says == "No answer yet: nothing is judged."


def test_rules_decide_nothing() -> None:
    cells = [provisional(cell(f"s{n}", model), score) for n in range(8) for model, score in (("a", 15), ("b", 6))]
    answer = board(*cells).answer
    assert (answer.verdict, answer.expected_loss) == ("too_little", None)
    assert answer.says == ("No answer yet: scores come from simple rules, which don't count. They rank a × v1 first.")
    assert answer.next.judgements == 16


def test_scores_on_hold_are_looked_into() -> None:
    hold = JudgeNote("lena", board(cell()).rubric_digest, "batch", provisional=False, counted=False)
    answer = board(*(replace(cell(f"s{number}"), judges=(hold,)) for number in range(2))).answer
    assert answer.says == "No answer yet: the scores of lena are on hold and don't count."
    assert answer.next.command == "tipbench judge --experiment e --status"


def test_one_variant_has_nothing_to_be_compared_with() -> None:
    answer = board(*rows(10)).answer
    assert answer.says == "Only m0 × v1 has scores, so there is nothing to compare it with."
    assert answer.next.text == "collect another model or prompt to compare with"


def test_a_pile_at_the_end_of_the_scale_is_told() -> None:
    answer = board(*rows(17, 17, 16.8, units=4, spread=0)).answer
    assert answer.verdict == "open"
    assert "because most scores are at the end of the scale" in answer.says


@pytest.mark.parametrize("count", [200])
def test_many_variants(count: int) -> None:
    found = board(*rows(*(6 + 8 * number / count for number in range(count)), units=4))
    assert len(found.answer.says) < 400
    check(found)


def check(found: Leaderboard) -> None:
    """The answer, the columns and the JSON agree."""
    answer = found.answer
    scored = [row for row in found.rows if row.composite is not None]
    assert answer.leader == (scored[0] if scored else None)
    assert answer.runner_up == (scored[1] if len(scored) > 1 else None)
    compared = [row for row in found.rows if row.rank]
    if compared:
        shared = found.comparison.scenarios
        means = {
            row.key: sum(behind.scores[one]["composite"] for one in shared)
            for row, behind in zip(found.rows, found.grid.rows, strict=True)
            if row.rank
        }
        assert means[compared[0].key] == pytest.approx(max(means.values())), "the leader has the highest mean"
    told = [row.rank for row in compared if row.rank and row.rank.p_top is not None]
    assert all(rank.top == (rank.p_top > found.comparison.level) for rank in told if rank.p_top is not None)
    proven = found.comparison.winner
    if proven is not None:
        assert found.top == (found.rows[proven],)
        assert found.comparison.winner_p == max(rank.p_top or 0 for rank in told if not rank.top)
        assert not found.comparison.clusters, "scenarios never stand in for personas"
        assert found.comparison.needed
        assert found.comparison.needed.more_units == 0
    assert (proven is not None and answer.verdict == "winner") == (" beats " in answer.says)
    if answer.verdict == "winner":
        assert [row for row in found.rows if row.rank and row.rank.top] == [answer.leader]
        assert " is the best of " in answer.says
    elif answer.verdict == "open":
        assert len(found.top) > 1
        assert answer.leader in found.top
        assert " is the best of " not in answer.says
    else:
        assert found.provisional or not found.top
    assert ("practically equal" in answer.says) == is_practically_equal(found)
    if is_practically_equal(found):
        assert answer.expected_loss is not None
        assert answer.expected_loss <= PRACTICALLY_EQUAL
    if answer.leader and row_label(found, answer.leader) in answer.says and answer.verdict != "too_little":
        assert f"{answer.leader.composite:.2f}" in answer.says
    data = json.loads(json.dumps(as_data(found)))
    assert data["answer"]["verdict"] == answer.verdict
    assert [line["top"] for line in data["standings"]] == [row.rank.top if row.rank else None for row in found.rows]
    in_json = data["comparison"]["winner"]
    assert (in_json and in_json["model"]) == (None if proven is None else found.rows[proven].model)
    assert any(" beats " in line for line in data["says"]) == (proven is not None)
    assert data["answer"]["expected_loss"] == answer.expected_loss
    assert data["answer"]["next"] == {
        "text": answer.next.text,
        "command": answer.next.command,
        "judgements": answer.next.judgements,
    }
    if answer.leader:
        first = data["standings"][0]
        told = data["answer"]["leader"]
        assert [told[key] for key in ("model", "prompt", "composite")] == [
            first[key] for key in ("model", "prompt", "composite")
        ]
        assert {key: told[key] for key in ("low", "high")}.items() <= first["scores"]["composite"].items()
    assert as_markdown(found).startswith("**")
    assert str(answer.sentences[1]).startswith("Next: ")


STATES = st.sampled_from(["judged", "judged", "judged", "judged", "pending", "failed", "empty", "rules"])


MAKE: dict[str, Callable[[StoredCell, float], StoredCell]] = {
    "judged": counted,
    "rules": provisional,
    "pending": lambda one, _: one,
    "failed": lambda one, _: failed(one),
    "empty": lambda one, _: empty(one),
}


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(1, 9), st.booleans(), st.integers(0, 10))
def test_whatever_the_scores_the_answer_the_columns_and_the_json_agree(
    data: st.DataObject, variants: int, personas: int, even: bool, lead: int
) -> None:
    """The first variant leads by so many points at least in some, so that there are winners of both tests."""
    made = []
    for variant in range(variants):
        for number in range(2 * personas):
            one = cell(f"s{number:02}", f"m{variant}", factors={"persona": f"p{number // 2}"})
            state = "judged" if even else data.draw(STATES)
            scores = st.integers(5 + lead, 17) if variant == 0 else st.integers(5, 17 - lead)
            made.append(MAKE[state](one, data.draw(scores)))
    check(board(*made))
