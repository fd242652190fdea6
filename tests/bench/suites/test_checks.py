"""Checks by code: what each kind finds, and that no text, pattern or schema makes one hang or fail."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tipbench.bench.suites import checking
from tipbench.bench.suites.checks import Check, checked
from tipbench.core.limited_process import LimitedProcess

SECONDS = 0.3
ANY_TEXT = st.text(st.characters(), max_size=300)  # lone surrogates and NUL, too
PATTERN_PARTS = st.sampled_from(
    ["(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "a", "b", ".", "\\", "^", "$", "(?:", "(?=", "(?<=", "{1,99}",
     "(a|a)*", "(.*)*", "\\1", "(?P<x>", "(?P=x)", "\\b", "\\w+", "0", ",", "-", "é", "\x00"]
)  # fmt: skip
PATTERNS = st.lists(PATTERN_PARTS, min_size=1, max_size=30).map("".join)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    ["type", "properties", "items", "pattern", "patternProperties", "$ref", "$defs", "not", "anyOf", "enum", "const",
     "minimum", "multipleOf", "uniqueItems", "required", "$schema", "$id", "$dynamicRef", "if", "then", "format"]
)  # fmt: skip
SCHEMAS = st.dictionaries(KEYWORDS, JSON_VALUES | PATTERNS | st.sampled_from(["#", "object", "http://127.0.0.1:9/x"]))


@pytest.fixture(autouse=True)
def _less_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    process = LimitedProcess("tipbench.bench.suites.checking", SECONDS)
    monkeypatch.setattr(checking, "_process", process)
    yield
    process.close()


def check(**given: Any) -> Check:
    return Check.model_validate(given, strict=True)


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [
        ({"check": "contains", "texts": ["Door", "14:00"]}, "At 14:00 the DOOR opens.", True),
        ({"check": "contains", "texts": ["Door", "15:00"]}, "At 14:00 the door opens.", False),
        ({"check": "excludes", "texts": ["hurry", "asap"]}, "Take your time.", True),
        ({"check": "excludes", "texts": ["hurry", "asap"]}, "Do it ASAP.", False),
        ({"check": "equals", "texts": ["New York", "NYC"]}, ' "new  york". ', True),
        ({"check": "equals", "texts": ["New York"]}, "New York City", False),
        ({"check": "equals", "texts": ["-5"]}, "5", False),
        ({"check": "equals", "texts": ["x"]}, "x" * 20_000, False),
        ({"check": "words", "words": ["very", "in conclusion"]}, "So, in\nConclusion: done", True),
        ({"check": "words", "words": ["very"]}, "Every one", False),
        ({"check": "number", "min": 3, "max": 4}, "About 3.5 hours.", True),
        ({"check": "number", "min": 3, "max": 4}, "About 5 hours.", False),
        ({"check": "number", "min": 3, "max": 4}, "3 or 4 hours", False),
        ({"check": "number", "min": 3, "max": 4}, "3 hours, yes: 3.0", True),
        ({"check": "number", "min": 3, "max": 4}, "no idea", False),
        ({"check": "number", "min": 1000}, "1,250 €", True),
        ({"check": "number", "max": 0}, "it is −4 degrees", True),
        ({"check": "number", "min": 0}, "9" * 1_000_000, False),
        ({"check": "number", "min": 0}, "1e999", False),
        ({"check": "regex", "pattern": r"^\d{2}:\d{2}$"}, "14:00", True),
        ({"check": "regex", "pattern": r"^\d{2}:\d{2}$"}, "at 14:00", False),
        ({"check": "json_schema", "schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', True),
        ({"check": "json_schema", "schema": {"type": "object", "required": ["a"]}}, '{"b": 1}', False),
        ({"check": "json_schema", "schema": True}, "no JSON", False),
        ({"check": "json_schema", "schema": True}, "NaN", False),
        ({"check": "json_schema", "schema": True}, "[" * 100_000, False),
        ({"check": "max_chars", "limit": 3}, "äöüß", True),
        ({"check": "max_words", "limit": 3}, "one two three", False),
    ],
)
def test_what_it_finds(given: dict[str, Any], text: str, expected: bool) -> None:
    assert check(**given).holds(text, True) is expected


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"check": "regex"}, "check regex needs pattern"),
        ({"check": "number"}, "check number needs max or min"),
        ({"check": "contains", "pattern": "x"}, "'pattern' does not belong here: check contains takes texts"),
        ({"check": "contract", "limit": 3}, "takes no parameter"),
        ({"limit": 3}, "'limit' does not belong here"),
        ({"check": "number", "min": 4, "max": 3}, "swap the two"),
        ({"check": "words", "words": ["--"]}, "holds no letter or digit"),
        ({"check": "equals", "texts": ["x" * 10_001]}, "at most 10,000 characters"),
        ({"check": "contains", "texts": []}, "at least 1 item"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        check(**given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"check": "regex", "pattern": "("}, "the pattern can't be used: missing )"),
        ({"check": "json_schema", "schema": {"type": "objekt"}}, "the schema can't be used: 'objekt'"),
        ({"check": "json_schema", "schema": {"$ref": "http://127.0.0.1:9/x"}}, "refers to another document"),
    ],
)
def test_a_pattern_or_schema_that_can_t_be_used_is_called_that(given: dict[str, Any], says: str) -> None:
    assert says in (check(**given).problem or "")
    assert check(check="regex", pattern="a+").problem is None


COSTLY: dict[str, tuple[dict[str, Any], str]] = {
    "backtracking": ({"check": "regex", "pattern": "^(a|aa)+$"}, "a" * 5_000 + "!"),
    "memory": ({"check": "regex", "pattern": "((((a?){99}){99}){99}){99}b"}, "a" * 2_000),
    "a long text": ({"check": "regex", "pattern": r"(\w+\s?)+$"}, "word " * 400_000 + "!"),
    "a pattern in a schema": ({"check": "json_schema", "schema": {"pattern": "^(a|aa)+$"}}, f'"{"a" * 5_000}!"'),
    "unique items": (
        {"check": "json_schema", "schema": {"uniqueItems": True}},
        "[" + ",".join(f'{{"a":{n}}}' for n in range(30_000)) + "]",
    ),
    "itself": ({"check": "json_schema", "schema": {"$ref": "#"}}, "1"),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_check_is_given_up_and_counts_as_failed(name: str, caplog: pytest.LogCaptureFixture) -> None:
    given, text = COSTLY[name]
    started = time.monotonic()
    assert check(**given).holds(text, True) is None
    assert time.monotonic() - started < SECONDS + 4
    assert checked(check(check="regex", pattern="b"), "b", True, "flag", worst=False) is True, "the next one is done"


@pytest.mark.parametrize("worst", [True, False])
def test_what_can_t_be_determined_has_the_value_that_lowers_the_score(
    worst: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broken = check(check="regex", pattern="(")
    assert checked(broken, "text", True, "has_date", worst) is worst
    assert "The check of 'has_date' took more than" in caplog.text


_quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_quick
@given(pattern=PATTERNS | st.text(min_size=1, max_size=30), text=ANY_TEXT | st.just("a" * 3_000))
def test_any_pattern_on_any_text_ends_and_raises_nothing(pattern: str, text: str) -> None:
    started = time.monotonic()
    one = check(check="regex", pattern=pattern)
    found = one.holds(text, True)
    assert found in (True, False, None)
    if one.problem:
        assert found is None
    assert time.monotonic() - started < 2 * SECONDS + 4


@_quick
@given(schema=SCHEMAS | st.booleans(), text=ANY_TEXT | JSON_VALUES.map(json.dumps))
def test_any_schema_on_any_text_ends_and_raises_nothing(schema: Any, text: str) -> None:
    started = time.monotonic()
    one = check(check="json_schema", schema=schema)
    assert one.holds(text, True) in (True, False, None)
    assert one.problem is None or one.problem.startswith("the schema can't be used: ")
    assert time.monotonic() - started < 2 * SECONDS + 4


@given(
    texts=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5), low=st.floats(-1e6, 1e6), text=ANY_TEXT
)
def test_the_other_kinds_answer_yes_or_no_to_any_text(texts: list[str], low: float, text: str) -> None:
    for kind in ("contains", "excludes", "equals"):
        assert isinstance(check(check=kind, texts=texts).holds(text, True), bool)
    assert isinstance(check(check="words", words=["word", *(f"x{one}" for one in texts)]).holds(text, True), bool)
    assert isinstance(check(check="number", min=low).holds(text, True), bool)
    assert check(check="contains", texts=texts).holds(text + "".join(texts), True)
    assert check(check="equals", texts=texts).holds(texts[0], True)


MEGABYTES = ("1" * 2_000_000, "1," * 1_000_000, "1,234" * 400_000, "a " * 1_000_000, "\u0315\u0300" * 500_000)


@pytest.mark.parametrize("number", range(len(MEGABYTES)))
def test_megabytes_take_no_time(number: int) -> None:
    given = ({"check": "number", "max": 0}, {"check": "equals", "texts": ["a"]}, {"check": "words", "words": ["b"]})
    started = time.monotonic()
    assert not any(check(**one).holds(MEGABYTES[number], True) for one in given)
    assert time.monotonic() - started < 3
