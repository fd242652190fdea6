"""The fence: nothing within it closes it, or reads like a part of a prompt."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge.judges.prompt import Delimiters, escape_markers

FENCE = Delimiters.derive(0, "slot")
MARKS = ("<<<", ">>>", "<|", "</s>", "[INST]", "[/INST]", "<start_of_turn>", "<｜", "\x1b", "\x00", "\ud800", "\r")


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.sampled_from([*MARKS, FENCE.token, FENCE.token.upper(), FENCE.closing, FENCE.opening, "<", ">", "\n"])
        | st.text(max_size=5)
    )
)
def test_whatever_is_within_there_is_one_beginning_and_one_end(parts: list[str]) -> None:
    fenced = FENCE.wrap(escape_markers("".join(parts)))
    assert fenced.startswith(f"<<<material {FENCE.token}\n")
    assert fenced.endswith(f"\nend {FENCE.token}>>>")
    assert len(re.findall(FENCE.token, fenced, re.IGNORECASE)) == 2
    assert (fenced.count("<<<"), fenced.count(">>>")) == (1, 1)
    inside = fenced.removeprefix(FENCE.opening).removesuffix(FENCE.closing)
    assert not [mark for mark in MARKS if mark in inside]


@pytest.mark.parametrize("text", ["Call Piet at 14:45.", "a > b, [see] [1]\n\tthen «this»", "ä 🙂 […]"])
def test_a_plain_text_stays_as_it_is(text: str) -> None:
    assert escape_markers(text) == text


def test_a_token_for_each_request() -> None:
    drawn = [
        Delimiters.derive(seed, slot, attempt).token for seed in (0, 1) for slot in ("a", "b") for attempt in (0, 1)
    ]
    assert len(set(drawn)) == 8
    assert Delimiters.derive(0, "slot") == FENCE
