"""Whatever a model writes is read without harm, and only an answer that keeps the contract is called well-formed."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tipbench.bench.suites.contract import Contract, without_thoughts

JSON_ARRAY = Contract(format="json_array")
LINES = Contract(format="lines")
TEXT = Contract(format="text")

# Pieces of broken answers: together they reach every reader.
PIECES = st.sampled_from(
    (
        *("[", "]", "{", "}", '"', "'", "['", "']", ",", ":", "\\", "\n", " ", "“", "”", "…", "\ud800", "\x00"),
        *("```", "```json\n", "<think>", "</think>", "- ", "1. ", "**", "tips", "null", "1"),
    )
)
ANSWERS = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))
LONG = 10**6


@settings(deadline=None, max_examples=100)
@given(raw=ANSWERS, n=st.integers(1, 6), contract=st.sampled_from([JSON_ARRAY, LINES, TEXT]))
def test_any_answer_is_read_and_never_gives_more_candidates_than_asked_for(
    raw: str, n: int, contract: Contract
) -> None:
    answer = contract.read(raw, n)
    assert len(answer.candidates) <= min(n, answer.found)
    assert all(candidate == candidate.strip() != "" for candidate in answer.candidates)
    assert bool(answer.candidates) == (answer.read_as != "nothing")


@settings(deadline=None, max_examples=100)
@given(raw=ANSWERS, n=st.integers(1, 3))
@example(raw='["one"]', n=1)
@example(raw='<think>hm</think>\n["one", "two"]', n=2)
def test_format_is_ok_only_for_an_array_of_exactly_n_texts_and_nothing_around_it(raw: str, n: int) -> None:
    answer = JSON_ARRAY.read(raw, n)
    if answer.format_ok:
        data = json.loads(without_thoughts(raw))
        assert isinstance(data, list)
        assert [item.strip() for item in data] == list(answer.candidates)
        assert len(data) == n


@settings(deadline=None, max_examples=100)
@given(texts=st.lists(st.text().filter(str.strip), min_size=1, max_size=5), ascii_only=st.booleans())
@example(texts=["Close your <think> tags", "and </think> them again"], ascii_only=True)
def test_an_answer_that_keeps_the_contract_is_read_as_it_stands(texts: list[str], ascii_only: bool) -> None:
    answer = JSON_ARRAY.read(f"\n{json.dumps(texts, ensure_ascii=ascii_only)} ", len(texts))
    assert answer.format_ok
    assert answer.read_as == "contract"
    assert list(answer.candidates) == [text.strip() for text in json.loads(json.dumps(texts))]


@pytest.mark.parametrize(
    "raw",
    [
        '["a", "b"]',  # too few
        '["a", "b", "c", "d"]',  # too many
        '["a", "b", " "]',  # an empty one
        '["a", "b", 3]',
        'Here you are: ["a", "b", "c"]',
        '["a", "b", "c"] Good luck!',
        '```json\n["a", "b", "c"]\n```',
        '{"tips": ["a", "b", "c"]}',
        '["a", "b", "c",]',
        "['a', 'b', 'c']",
        "1. a\n2. b\n3. c",
        "",
    ],
)
def test_anything_but_the_contract_to_the_letter_is_not_ok(raw: str) -> None:
    assert not JSON_ARRAY.read(raw, 3).format_ok


@pytest.mark.parametrize(
    ("raw", "read_as"),
    [
        ('Sure! ["one", "two"] Enjoy.', "json"),
        ('```json\n["one", "two"]\n```', "json"),
        ('{"tips": ["one", "two"]}', "json"),
        ('[{"tip": "one", "why": "x"}, {"tip": "two"}]', "json"),
        ('{"1": "one", "2": "two"}', "json"),
        ('[note] then ["one", "two"]', "json"),
        ('{"tip": "one", "why": "x"}\n{"tip": "two"}\n', "json"),
        ('[{"tip": "one", "why": "x"}, {"tip": "two"}, {"tip": "th', "json"),
        ('["tip 1", …] as you wish: ["one", "two"]', "json"),
        ('["one", "two", "thr', "json cut off"),
        ('{"tips": ["one", "two", "thr', "json cut off"),
        ('["one" "two"]', "json cut off"),
        ('["one", "two", "he said \\"no', "json cut off"),
        ("['one', 'two']", "single quotes"),
        ("['one', 'two", "single quotes"),
        ("Tips:\n1. one\n2) two\n", "list"),
        ("- one\n* two", "list"),
        ('1. "one",\n2. **two**', "list"),
        ("<think>1. no 2. no</think>\n- one\n- two", "list"),
        ("1. no\n2. never\n</think>\n- one\n- two", "list"),
    ],
)
def test_candidates_are_still_found_in_an_answer_that_breaks_the_contract(raw: str, read_as: str) -> None:
    answer = JSON_ARRAY.read(raw, 5)
    assert answer.candidates == ("one", "two")
    assert answer.read_as == read_as


def test_found_counts_the_candidates_beyond_those_asked_for() -> None:
    answer = JSON_ARRAY.read('["a", "b", "c"]', 2)
    assert answer.candidates == ("a", "b")
    assert answer.found == 3


def test_a_list_item_goes_on_over_the_next_lines() -> None:
    assert JSON_ARRAY.read("1. Call\nAnke now\n\n2. Sleep", 2).candidates == ("Call Anke now", "Sleep")


def test_thinking_that_never_ends_leaves_no_candidate() -> None:
    answer = JSON_ARRAY.read('<think>maybe ["a", "b"]', 2)
    assert answer == ((), 0, False, "nothing")


def test_lines_take_one_candidate_a_line() -> None:
    assert LINES.read("one\ntwo\n", 2) == (("one", "two"), 2, True, "contract")
    assert LINES.read("one\ntwo\nthree", 2) == (("one", "two"), 3, False, "lines")
    assert LINES.read("1. one\n2. two", 2) == (("one", "two"), 2, False, "list")


def test_text_takes_the_whole_answer_as_one_candidate() -> None:
    assert TEXT.read("<think>hm</think> One.\nTwo. ", 5) == (("One.\nTwo.",), 1, True, "contract")
    assert TEXT.read(" \n", 5) == ((), 0, False, "nothing")


@pytest.mark.parametrize("contract", [JSON_ARRAY, LINES, TEXT], ids=lambda contract: str(contract.format))
@pytest.mark.parametrize(
    "raw",
    [
        "[" * LONG,
        '"' * LONG,
        "```" * (LONG // 3),
        "```\n[" * (LONG // 5),
        "<think>" * (LONG // 7),
        "</think>" * (LONG // 8),
        "['" * (LONG // 2),
        '["' + '\\"' * (LONG // 2),
        '["' + "\\" * LONG,
        '{"' * (LONG // 2),
        "- a\n" + "b\n" * (LONG // 2),
        "1. **" + "a*" * (LONG // 2),
        "['" + "' " * (LONG // 2),
    ],
    ids=lambda raw: repr(raw[:8]),
)
def test_a_megabyte_of_nonsense_is_read_in_under_two_seconds(raw: str, contract: Contract) -> None:
    started = time.process_time()
    contract.read(raw, 5)
    assert time.process_time() - started < 2
