"""The rubric's arithmetic: the composite, its range, and the flags that code can tell."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rubric import Criterion, Flag, Rubric, RubricFront, parse_rubric
from tipbench.core.errors import SuiteError

TIP = load_suite("tip").rubric


def made(criteria: dict[str, Criterion], flags: dict[str, Flag]) -> Rubric:
    return Rubric("", RubricFront(name="made", criteria=criteria, flags=flags), "")


@settings(max_examples=100)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.booleans())
def test_the_tip_composite_is_the_sum_of_the_scores_plus_twice_format_less_overlong(
    relevance: int, actionability: int, tone: int, format_ok: bool, overlong: bool
) -> None:
    scores = {"relevance": relevance, "actionability": actionability, "tone": tone}
    composite = TIP.composite(scores, {"format_ok": format_ok, "overlong": overlong})
    assert composite == relevance + actionability + tone + 2 * format_ok - overlong
    assert TIP.lowest()["composite"] <= composite <= TIP.highest_composite()


def test_the_tip_composite_goes_from_2_to_17() -> None:
    assert TIP.lowest() == {
        "relevance": 1,
        "actionability": 1,
        "tone": 1,
        "format_ok": 0,
        "overlong": 1,
        "composite": 2,
    }
    assert TIP.highest_composite() == 17


@settings(max_examples=100)
@given(
    weights=st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any),
    scores=st.lists(st.integers(-2, 2), min_size=2, max_size=2),
    flag=st.booleans(),
)
def test_no_verdict_is_below_the_lowest_or_above_the_highest(weights: list[int], scores: list[int], flag: bool) -> None:
    rubric = made(
        {name: Criterion(min=-2, max=2, weight=weight) for name, weight in zip("ab", weights, strict=False)},
        {"f": Flag(weight=weights[2])},
    )
    composite = rubric.composite(dict(zip("ab", scores, strict=True)), {"f": flag})
    assert rubric.lowest()["composite"] <= composite <= rubric.highest_composite()


def test_score_names_end_with_the_composite() -> None:
    assert TIP.score_names == ("relevance", "actionability", "tone", "format_ok", "overlong", "composite")


@pytest.mark.parametrize(("length", "overlong"), [(0, False), (160, False), (161, True)])
def test_a_tip_is_overlong_from_161_characters_on(length: int, overlong: bool) -> None:
    assert TIP.checked_flags("ä" * length, True, "") == {"format_ok": True, "overlong": overlong}


def test_words_are_counted_and_what_code_can_not_tell_is_left_to_the_judge() -> None:
    rubric = made(
        {"a": Criterion(min=1, max=2)}, {"wordy": Flag(weight=-1, check="max_words", limit=2), "funny": Flag(weight=1)}
    )
    assert rubric.checked_flags("one two", True, "") == {"wordy": False}
    assert rubric.checked_flags("one two\nthree", True, "") == {"wordy": True}


def test_the_digest_follows_every_change_of_the_text() -> None:
    assert parse_rubric(TIP.text).digest == TIP.digest
    assert parse_rubric(TIP.text + "\nOne more word.").digest != TIP.digest


@pytest.mark.parametrize("scale", [{"min": 3, "max": 3}, {"min": 0, "max": 21}, {"min": 1, "max": 1000}, {"min": 2}])
def test_a_scale_that_is_none_is_refused(scale: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Criterion.model_validate(scale)


@pytest.mark.parametrize(
    "flag",
    [
        {"weight": 1, "check": "max_chars"},
        {"weight": 1, "limit": 3},
        {"weight": 1, "check": "contract", "limit": 3},
        {"weight": 1, "check": "max_chars", "limit": 0},
        {"weight": float("nan")},
        {},
    ],
)
def test_a_flag_whose_parts_do_not_fit_is_refused(flag: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Flag.model_validate(flag)


def test_a_name_stands_for_one_thing() -> None:
    with pytest.raises(ValidationError, match="used both as a criterion and as a flag: a; rename"):
        made({"a": Criterion(min=1, max=2)}, {"a": Flag(weight=1)})


def test_levels_below_zero_have_headings_too() -> None:
    text = "---\nname: r\ncriteria:\n  a: {min: -1, max: 1}\n---\n## A\n### -1\n### 0\n### 1\n"
    assert parse_rubric(text).criteria["a"].min == -1


def test_a_body_without_any_section_is_told_what_is_missing() -> None:
    with pytest.raises(SuiteError, match="criterion 'a' has no section; add a heading '## A'"):
        parse_rubric("---\nname: r\ncriteria:\n  a: {min: 1, max: 2}\n---\nBe fair.\n")


def test_weights_that_are_all_0_or_beyond_reason_are_refused() -> None:
    with pytest.raises(ValidationError, match="all weights are 0"):
        made({"a": Criterion(min=1, max=5, weight=0)}, {})
    with pytest.raises(ValidationError, match="less than or equal to 1000"):
        Criterion(min=1, max=5, weight=1e200)
