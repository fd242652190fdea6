"""Version 3: what a request tells, and what only the service knows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recommender.making import a_profile, a_request, candidates
from tipbench.recommender.features.interface import category_number
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.features.v3 import CATEGORY, DENSE, MOST_CATEGORIES, NAMES, V3, Impressions, Shown, fill_in

HOUR_MS = 3_600_000


def test_it_begins_with_version_2_and_ends_with_the_category() -> None:
    request = a_request(profile=a_profile())
    matrix = V3.matrix(request)
    np.testing.assert_array_equal(matrix[:, : V2.dimensions], V2.matrix(request))
    assert matrix[:, CATEGORY].tolist() == [category_number(one.category) for one in request.candidates]
    assert V3.rows(request) == matrix.tolist()
    assert NAMES[DENSE:] == ("category",)


@pytest.mark.parametrize(("judged", "seen"), [(None, 0.0), (0.0, -1.0), (0.5, 0.0), (1.0, 1.0)])
def test_a_judgement_is_neutral_where_there_is_none(judged: float | None, seen: float) -> None:
    first, *others = candidates(3)
    matrix = V3.matrix(a_request(of=[first.model_copy(update={"judged": judged}), *others]))
    assert matrix[:, NAMES.index("judged")].tolist() == [seen, 0.0, 0.0]


def test_the_rest_comes_from_what_was_shown_and_what_tips_earned() -> None:
    request, shown = a_request(of=candidates(3)), Shown()
    shown.add("focus", HOUR_MS)
    rows = V3.rows(request)
    assert fill_in(rows, request, shown, {"t2": 0.25}, 25 * HOUR_MS) == [1, 0, 1], "the next slot, if never met"
    assert [row[NAMES.index("tiredness")] for row in rows] == pytest.approx([0, math.exp(-1) / 4, 0])
    assert [row[NAMES.index("tip_reward")] for row in rows] == [0, 0, 0.25]


@given(times=st.lists(st.integers(1, 10**9), min_size=1, max_size=20), data=st.data())
def test_impressions_count_alike_in_any_order(times: list[int], data: st.DataObject) -> None:
    now = max(times) + data.draw(st.integers(1, 10**9))
    for order in (times, data.draw(st.permutations(times))):
        impressions = Impressions()
        for at_ms in order:
            impressions.add(at_ms)
        assert impressions.count(now) == pytest.approx(
            sum(math.exp(-(now - at_ms) / (24 * HOUR_MS)) for at_ms in times), rel=1e-9
        )
        before = sum(math.exp(-(max(times) - at_ms) / (24 * HOUR_MS)) for at_ms in times if at_ms < max(times))
        assert impressions.count(max(times)) == pytest.approx(before, rel=1e-9), "an impression does not see itself"


def test_categories_beyond_the_32nd_share_a_slot() -> None:
    shown = Shown()
    for number in range(MOST_CATEGORIES + 3):
        assert shown.slot(category_number(f"c{number}")) == min(number, MOST_CATEGORIES), (
            "the next one, if there is one"
        )
        shown.add(f"c{number}", HOUR_MS)
    assert [name for _, name in shown.met()] == [*(f"c{number}" for number in range(MOST_CATEGORIES)), None]
    assert shown.slot(category_number("c7")) == 7
    assert shown.tiredness(MOST_CATEGORIES, HOUR_MS + 1) == pytest.approx(0.75, rel=1e-6)
