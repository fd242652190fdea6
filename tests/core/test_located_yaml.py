"""YAML is read with the line of everything in it, and nothing in a file makes the reader itself fail."""

import re
import time
from itertools import pairwise

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.core.located_yaml import load_located

PIECES = st.sampled_from(
    (
        *("a", "b", ": ", "\n", "  ", "- ", "[", "]", "{", "}", ",", "&x ", "*x", "|", ">", "? ", "<<", "'", '"', "#"),
        *("!!int ", "!!bool ", "!!timestamp ", "!!binary ", "!!set ", "!x ", "2001-99-99", "0x_", "1e400", ".nan"),
        *("\\U", "=", "---\n", "%YAML 9\n", "\x00", "\ufeff", "\ud800", "\t"),
    )
)
# Where we differ on purpose: 0E0 is a text for other readers, which write it without quotes, and a number for us.
TEXTS = st.text().filter(lambda text: not re.fullmatch(r"-?\d+(\.\d+)?[eE][-+]?\d+", text, re.ASCII))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, max_examples=150)
@given(text=st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
def test_any_text_is_read_or_told_to_be_wrong_and_never_raises(text: str) -> None:
    located = load_located(text, first_line=3)
    assert all(line >= 3 and message for line, message in located.problems)
    assert located.line(("no", "such", "path")) >= 1


@settings(deadline=None, max_examples=150)
@given(data=PLAIN)
def test_data_comes_out_as_any_other_yaml_reader_gives_it(data: object) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    located = load_located(text)
    assert located.problems == []
    assert located.data == yaml.safe_load(text)


def test_every_value_has_its_line() -> None:
    located = load_located("a: 1\nb:\n  - x\n  - c: 2\n\nd: {e: 3}\n", first_line=10)
    assert [located.line(path) for path in [("a",), ("b",), ("b", 0), ("b", 1, "c"), ("d", "e")]] == [
        10,
        11,
        12,
        13,
        15,
    ]
    assert located.line(("b", 1, "missing")) == 13


@pytest.mark.parametrize(
    ("text", "line"),
    [("t: one", 1), ("t:\n  one", 2), ("t: |\n  one", 2), ("t: >-\n  one\n  two", 2), ("a: 1\nt: 'one'", 2)],
)
def test_a_text_says_where_its_first_line_stands(text: str, line: int) -> None:
    assert load_located(text).text_lines["t",] == line


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice"),
        ("a: 1\n2: b\n", 2, "the key 2 is not text"),
        ("a: 1\n? [b]\n: 2\n", 2, "is not text"),
        ("a: 1\nb: [\n", 3, "not valid YAML"),
        ("a: 1\nb: 2001-99-99\n", 2, "is no timestamp"),
        ("a: 1\nb: !!bool maybe\n", 2, "is no bool"),
        ("a: 1\nb: !!int ''\n", 2, "is no int"),
        ("a: 1\n--- b\n", 2, "a second document"),
        ("a: &x\n  - *x\n", 1, "nested too deeply"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, line: int, message: str) -> None:
    (problem,) = load_located(text).problems
    assert problem[0] == line
    assert message in problem[1]


@pytest.mark.parametrize("use", ["value: *h", "? *h\n: 1"])
def test_a_bomb_of_aliases_is_refused_at_once(use: str) -> None:
    letters = "abcdefgh"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(letters)
    )
    started = time.process_time()
    assert load_located(bomb + use).problems
    assert time.process_time() - started < 5


@pytest.mark.parametrize("number", ["1e-05", "1e+16", "-2.5E3", "0e0", "1.5", "-0.0"])
def test_numbers_are_read_as_json_writes_them(number: str) -> None:
    value = load_located(f'{{"n": {number}}}').data["n"]
    assert isinstance(value, float)
    assert value == float(number)


@pytest.mark.parametrize("text", ["1e", "e5", "1e5x", "01e5", "1_0e5"])
def test_what_json_takes_for_no_number_stays_a_text(text: str) -> None:
    assert load_located(f"n: {text}").data["n"] == text
