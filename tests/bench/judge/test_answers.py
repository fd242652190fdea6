"""Scores are found in whatever an agent's program writes around them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.bench.judge.answers import Usage, filled, find_error, find_scores, find_usage

SCORES: dict[str, dict[str, Any]] = {"aaaa2222": {"clarity": 4, "note": "short"}, "bbbb3333": {"clarity": 1}}
WHOLE = json.dumps(SCORES, indent=1)
FILE = {
    "items": [{"slot": slot, "scores": one, "flags": {"overlong": None}, "note": ""} for slot, one in SCORES.items()]
}


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"Here you are:\n\n{WHOLE}\n\nAnything else?",
        f"```json\n{WHOLE}\n```",
        json.dumps({"type": "result", "result": f"Done.\n```json\n{WHOLE}\n```"}),
        json.dumps({"type": "system"}) + "\n" + json.dumps({"item": {"text": WHOLE}}),
        json.dumps([{"slot": slot, **one} for slot, one in SCORES.items()]),
        f"The file:\n{json.dumps({'scores': SCORES})}",
        json.dumps({"content": [{"type": "text", "text": json.dumps({"result": WHOLE})}]}),
    ],
    ids=["alone", "prose", "fence", "envelope", "lines", "list", "named", "nested"],
)
def test_they_are_found_wherever_they_stand(text: str) -> None:
    assert find_scores(text, SCORES) == SCORES


def test_a_whole_judge_file_is_read_too() -> None:
    found = find_scores(json.dumps(FILE), SCORES)
    assert {slot: one["clarity"] for slot, one in found.items()} == {"aaaa2222": 4, "bbbb3333": 1}


def test_an_answer_that_breaks_off_gives_what_is_whole() -> None:
    assert find_scores(WHOLE[:-20], SCORES) == {"aaaa2222": SCORES["aaaa2222"]}


def test_unknown_slots_and_unfilled_items_are_no_scores() -> None:
    assert find_scores(json.dumps({"zzzz9999": {"clarity": 5}}), SCORES) == {}
    unfilled = {"items": [{"slot": "aaaa2222", "scores": {"clarity": None}, "flags": {}, "note": ""}]}
    assert find_scores(json.dumps(unfilled), SCORES) == {}


def test_the_last_answer_counts_and_doubled_names_do_not() -> None:
    assert find_scores(f'{WHOLE} No, wait: {{"aaaa2222": {{"clarity": 2}}}}', SCORES)["aaaa2222"] == {"clarity": 2}
    assert find_scores('{"aaaa2222": {"clarity": 2, "clarity": 5}}', SCORES) == {}


@given(st.text(), st.dictionaries(st.text(), st.none() | st.integers() | st.text()))
def test_texts_that_name_no_slot_give_nothing(text: str, data: dict[str, Any]) -> None:
    assert find_scores(text + json.dumps(data), SCORES) == {}


@given(st.text(alphabet='{}[]":,ab2 \\n', max_size=300))
def test_broken_json_breaks_nothing(text: str) -> None:
    found = find_scores(f"{text}{WHOLE}", SCORES)
    assert found.keys() <= SCORES.keys()
    find_usage(text)
    find_error(text)


def test_deep_or_long_nonsense_takes_no_time() -> None:
    assert find_scores("[" * 200_000 + WHOLE, SCORES) == SCORES
    assert find_scores('{"a":' * 50_000, SCORES) == {}


def test_cost_and_tokens_are_added_up_and_errors_are_read() -> None:
    one = {"total_cost_usd": 0.25, "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}}
    text = f"{json.dumps(one)}\n{json.dumps({'usage': {'prompt_tokens': 2, 'completion_tokens': 1}})}"
    assert find_usage(text) == Usage(0.25, 17, 4)
    assert find_usage('{"total_cost_usd": NaN, "usage": {"input_tokens": -4}}') == Usage()
    assert find_error(json.dumps({"is_error": True, "result": "no credit"})) == "no credit"
    assert find_error(json.dumps({"is_error": False, "result": "fine"})) == ""


def test_a_file_is_filled_in_with_flags_and_notes() -> None:
    file = {"items": [{"slot": "aaaa2222", "scores": {"clarity": None}, "flags": {"overlong": None}, "note": ""}]}
    done = filled(file, {"aaaa2222": {"clarity": 4, "overlong": True, "note": "long"}})
    assert done["items"] == [
        {"slot": "aaaa2222", "scores": {"clarity": 4}, "flags": {"overlong": True}, "note": "long"}
    ]
