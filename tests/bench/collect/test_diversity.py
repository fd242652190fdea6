"""Diversity goes from 0, all the same words, to 1, no word in common."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.collect.grid import diversity


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (["call Anke now", "Now call Anke!"], 0.0),
        (["call Anke", "sleep well"], 1.0),
        (["call Anke", "call Piet"], 2 / 3),
        (["a b", "a b", "c d"], 2 / 3),
        (["!", "?"], 0.0),
        (["STRASSE", "straße"], 0.0),
    ],
)
def test_the_share_of_words_that_two_candidates_do_not_share(candidates: list[str], expected: float) -> None:
    assert diversity(candidates) == pytest.approx(expected)


@pytest.mark.parametrize("candidates", [[], ["alone"]])
def test_fewer_than_two_candidates_have_no_diversity(candidates: list[str]) -> None:
    assert diversity(candidates) is None


@settings(deadline=None, max_examples=150)
@given(candidates=st.lists(st.text(), min_size=2, max_size=6))
def test_any_candidates_lie_between_0_and_1_in_any_order(candidates: list[str]) -> None:
    found = diversity(candidates)
    assert found is not None
    assert 0 <= found <= 1
    assert diversity(candidates[::-1]) == pytest.approx(found)
    assert diversity([candidates[0]] * 3) == 0
