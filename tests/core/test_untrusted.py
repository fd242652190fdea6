"""What a model wrote is kept to the letter and can harm neither a store, a terminal, a spreadsheet nor a JSON file."""

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tipbench.core.untrusted import (
    inert_in_spreadsheets,
    json_data,
    json_text,
    markdown_text,
    printable,
    restored,
    shown,
    storable,
    without_credentials,
)

# Any character there is, surrogates and NUL among them, and often those that need care.
TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from("\\u0\x00\x1b\x9b\n\r\t\u202e\u2028\ud800\udfff\ud83d\ude00"))
)
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None, max_examples=150)
@given(text=TEXTS)
@example(text="\\u0000")
@example(text="\\u0000\x00")
@example(text="\\\\\ud800")
@example(text="\ud83d\ude00")
def test_every_text_comes_back_from_a_store_as_it_went_in(text: str) -> None:
    stored = storable(text)
    assert "\x00" not in stored.text
    stored.text.encode("utf-8")
    assert restored(stored) == text


def test_a_harmless_text_is_stored_as_it_is() -> None:
    assert storable("Größe: C:\\temp 😀\n") == ("Größe: C:\\temp 😀\n", False)


@settings(deadline=None, max_examples=150)
@given(text=TEXTS, limit=st.none() | st.integers(1, 40))
@example(text="\x1b]0;title\x07\x1b[2J", limit=None)
def test_no_escape_sequence_reaches_a_terminal(text: str, limit: int | None) -> None:
    shown_text = printable(text, limit)
    assert not DANGEROUS.search(shown_text)
    shown_text.encode("utf-8")
    if limit is not None:
        assert len(shown_text.splitlines()) <= 1


def test_a_limit_cuts_a_text_and_shows_that_it_did() -> None:
    assert printable("one two", 7) == "one two"
    assert printable("one\n two three", 8) == "one two…"


@settings(deadline=None, max_examples=150)
@given(text=JSON.map(json.dumps) | TEXTS)
@example(text='{"a": "\\ud800"}')
@example(text='"\ud800"')
@example(text='{"a": 1, "a": NaN}')
@example(text="1e999")
@example(text="[" * 5_000)
def test_json_is_read_as_by_the_standard_library(text: str) -> None:
    try:
        expected = json.loads(text)
    except (ValueError, RecursionError) as error:
        with pytest.raises(type(error)):
            json_data(text)
    else:
        assert repr(json_data(text)) == repr(expected)


@settings(deadline=None, max_examples=150)
@given(data=JSON, indent=st.sampled_from([None, 2]))
def test_json_is_printable_and_holds_what_it_was_given(data: object, indent: int | None) -> None:
    text = json_text(data, indent)
    assert not DANGEROUS.search(text)
    text.encode("utf-8")
    # JSON itself can't tell two halves of a surrogate pair from the character that they make.
    assert json.loads(text) == json.loads(json.dumps(data))
    if not SURROGATE_PAIR.search(str(data)):
        assert json.loads(text) == data


_PLAIN = st.text('aé"\\\\/ \n', max_size=6)
_KEYS = _PLAIN | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=150)
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _PLAIN,
        lambda inner: st.lists(inner, max_size=4) | st.tuples(inner) | st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=12,
    ),
    indent=st.sampled_from([1, 2, 4]),
)
def test_indented_json_is_laid_out_as_by_the_standard_library(data: object, indent: int) -> None:
    assert json_text(data, indent) == json.dumps(data, indent=indent, ensure_ascii=False)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_never_holds_a_number_that_is_none(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"score": number})


def test_people_can_read_the_json() -> None:
    assert json_text(["Größe 😀"], indent=None) == '["Größe 😀"]'


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("value", [16**9999, nested(5000), "\x1b[2J" * 100, {"a": "\n"}], ids=type)
def test_any_value_can_be_shown_in_a_message(value: object) -> None:
    text = shown(value)
    assert 0 < len(text) <= 60
    assert text == printable(text)


@settings(deadline=None, max_examples=150)
@given(text=TEXTS)
@example(text="=1+1")
@example(text="\t=1+1")
@example(text="\uff1d1+1")
@example(text="\n=1+1")
def test_no_text_is_a_formula_in_a_spreadsheet(text: str) -> None:
    cell = inert_in_spreadsheets(text)
    assert not cell.startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n"))
    assert not DANGEROUS.search(cell)


def test_numbers_stay_numbers_in_a_spreadsheet() -> None:
    assert [inert_in_spreadsheets(value) for value in (-1, 2.5, None, True)] == [-1, 2.5, None, True]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:1/v1/", "http://host:1/v1"),
        ("http://u:p@host", "http://host"),
        ("http://u:p@q@host", "http://host"),
        ("http://u:p#q@host", "http://host"),
        ("u:p@host", "host"),
    ],
)
def test_without_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("At 8:00 - 9:00, 50 % of it.", "At 8:00 - 9:00, 50 % of it."),
        ("0.38", "0.38"),
        ("-1.5", "-1.5"),
        ("<img src=x>&lt;b&gt;", "&lt;img src=x&gt;&amp;lt;b&amp;gt;"),  # some renderers know no backslash before <
        ("![x](y) [x]: y", "!\\[x\\](y) \\[x\\]: y"),
        ("https://x.example www.x.example", "https&#58;//x.example www&#46;x.example"),
        ("@octocat a@b.example", "&#64;octocat a&#64;b.example"),
        ("**a** _b_ `c` ~~d~~", "\\*\\*a\\*\\* \\_b\\_ \\`c\\` \\~\\~d\\~\\~"),
        ("a | b\n\n# c", "a \\| b # c"),
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("12. a", "12\\. a"),
        ("---", "-\\--"),
        ("===", "\\==="),
    ],
)
def test_text_in_markdown_is_text(text: str, escaped: str) -> None:
    assert markdown_text(text) == escaped
