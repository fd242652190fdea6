"""Questions: one a criterion and one a flag that code can't check; only allowed answers are taken."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.judge.judges.files import TIP
from tipbench.bench.judge.judges.prompt import Question, questions
from tipbench.bench.suites.rubric import Criterion, Flag, Rubric, RubricFront

SCORE = Question("clarity", "Is it clear?", "score", (0, 1, 2, 3))
FLAG = Question("rude", "Is it rude?", "answer", (False, True))


def test_the_tip_rubric_asks_for_its_criteria_and_code_checks_its_flags() -> None:
    asked = questions(TIP)
    assert [question.name for question in asked] == ["relevance", "actionability", "tone"]
    assert asked[0].allowed == (1, 2, 3, 4, 5)
    assert asked[0].asks == TIP.criteria["relevance"].question


def test_open_flags_are_asked_and_a_question_that_is_missing_is_made_up() -> None:
    front = RubricFront(
        name="r",
        criteria={"plain_words": Criterion(min=-1, max=1)},
        flags={"odd": Flag(weight=1), "long": Flag(weight=-1, check="max_words", limit=3)},
    )
    criterion, flag = questions(Rubric("", front, ""))
    assert (criterion.asks, criterion.allowed) == ("How good is the text in this respect: plain words?", (-1, 0, 1))
    assert (flag.name, flag.asks, flag.is_flag) == ("odd", "Is this so: odd?", True)


def test_the_schema_allows_what_is_allowed() -> None:
    assert SCORE.schema["properties"] == {"score": {"type": "integer", "enum": [0, 1, 2, 3]}}
    assert FLAG.schema["properties"] == {"answer": {"type": "boolean"}}
    assert SCORE.form == '{"score": N}, where N is a whole number from 0 to 3'


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ('{"score": 2}', 2),
        (' {\n"score":0}\n', 0),
        ('<think>A 3? {"score": 3}</think>{"score": 1}', 1),
        ('{"score": 4}', None),
        ('{"score": -1}', None),
        ('{"score": true}', None),
        ('{"score": 2.0}', None),
        ('{"score": "2"}', None),
        ('{"score": null}', None),
        ('{"answer": 2}', None),
        ("[2]", None),
        ("2", None),
        ("", None),
        ('{"score": 2', None),
        ('{"score": ' + "1" * 9999 + "}", None),
        ("[" * 100_000, None),
    ],
)
def test_reading_a_score(answer: str, read: int | None) -> None:
    assert SCORE.read(answer) == read


@pytest.mark.parametrize(
    ("answer", "read"),
    [('{"answer": true}', True), ('{"answer": false}', False), ('{"answer": 1}', None), ("{}", None)],
)
def test_reading_a_flag(answer: str, read: bool | None) -> None:
    assert FLAG.read(answer) is read


@settings(deadline=None, max_examples=150)
@given(st.text() | st.recursive(st.none() | st.integers(), lambda inner: st.dictionaries(st.just("score"), inner)))
def test_whatever_is_answered_nothing_but_an_allowed_value_is_read(data: object) -> None:
    assert SCORE.read(data if isinstance(data, str) else json.dumps(data)) in (None, 0, 1, 2, 3)
