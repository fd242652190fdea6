"""The judge of rules fills in a file as a person would: complete, within the scales, the same every time."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge.file import BatchItem, judge_file
from tipbench.bench.judge.judges.lexical import LexicalJudge
from tipbench.bench.judge.verify import verify
from tipbench.bench.records import Batch, Slot
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rubric import Criterion, Flag, Rubric, RubricFront
from tipbench.core.identity import text_digest

TIP = load_suite("tip").rubric
SCENARIO = (
    "Hanna, librarian. 14:10. Tasks: finish the grant form, the director signs until 16:00; Piet sets up the room."
)


def batch_and_file(
    candidates: list[str], scenario: str = SCENARIO, rubric: Rubric = TIP
) -> tuple[Batch, dict[str, Any]]:
    items = [
        BatchItem(
            Slot(str(n), "run", n, text_digest(text), text_digest(scenario), rubric.checked_flags(text, True, "")),
            scenario,
            text,
        )
        for n, text in enumerate(candidates)
    ]
    batch = Batch("b", "lexical", True, 0, rubric.digest, 0, "", tuple(item.slot for item in items))
    return batch, judge_file(batch, rubric, items)


def scores(candidate: str) -> dict[str, int]:
    filled = LexicalJudge(TIP).score(batch_and_file([candidate])[1])
    found: dict[str, int] = filled["items"][0]["scores"]
    return found


@settings(deadline=None, max_examples=150)
@given(candidates=st.lists(st.text(), min_size=1, max_size=4), scenario=st.text())
def test_whatever_the_candidates_are_the_filled_file_is_accepted(candidates: list[str], scenario: str) -> None:
    batch, file = batch_and_file(candidates, scenario)
    filled = LexicalJudge(TIP).score(file)
    assert len(verify(filled, batch, TIP)) == len(candidates)
    assert filled == LexicalJudge(TIP).score(file)


def test_the_file_it_is_given_stays_as_it_is() -> None:
    _, file = batch_and_file(["Call Piet."])
    before = copy.deepcopy(file)
    LexicalJudge(TIP).score(file)
    assert file == before


def test_its_scores_never_count_as_a_persons() -> None:
    assert LexicalJudge.identity.provisional


def test_a_concrete_tip_scores_above_an_empty_phrase() -> None:
    concrete = scores("Finish the grant form by 14:45, then bring it to the director while Piet sets up the room.")
    empty = scores("Remember to stay focused and always prioritize!")
    assert all(concrete[name] > empty[name] for name in TIP.criteria)


@pytest.mark.parametrize("loud", ["DO IT NOW RIGHT HERE", "Do it now!!!", "Never be lazy again today"])
def test_shouting_and_harsh_words_cost_tone(loud: str) -> None:
    assert scores(loud)["tone"] < scores("Do it now right here")["tone"]


def test_it_judges_by_the_rules_that_any_rubric_names_and_answers_its_open_flags() -> None:
    front = RubricFront(
        name="other",
        criteria={
            "close": Criterion(min=0, max=10, lexical="overlap"),
            "quiet": Criterion(min=-1, max=1, lexical="calm"),
        },
        flags={"funny": Flag(weight=1), "rude": Flag(weight=-1)},
    )
    rubric = Rubric("", front, "")
    batch, file = batch_and_file(["finish grant form director signs"], rubric=rubric)
    (verdict,) = verify(LexicalJudge(rubric).score(file), batch, rubric)
    assert verdict.scores["close"] == 10
    assert verdict.flags == {"funny": False, "rude": True}
