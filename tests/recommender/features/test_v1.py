"""The first version of the features."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recommender.making import a_request
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.records import Candidate


def row(candidate: Candidate, hour: float = 6.0, focus: str | None = "inbox") -> dict[str, float]:
    (found,) = V1.rows(a_request(hour=hour, focus=focus, of=[candidate]))
    return dict(zip(V1.names, found, strict=True))


def test_each_dimension_is_what_its_name_says() -> None:
    found = row(Candidate(id="t", category="inbox", len_chars=120, effort_min=15.0, hours_since_shown=24.0))
    assert found == pytest.approx(
        {
            "bias": 1.0,
            "hour_sin": 1.0,
            "hour_cos": 0.0,
            "focus_match": 1.0,
            "length": math.log(121) / math.log(2001),
            "effort": 0.25,
            "recency": math.exp(-1),
        }
    )


def test_what_is_not_known_of_a_candidate_is_nought() -> None:
    found = row(Candidate(id="t", category="rest"))
    assert [found[name] for name in ("focus_match", "length", "effort", "recency")] == [0.0, 0.0, 0.0, 0.0]


def test_nothing_matches_a_focus_that_nobody_has() -> None:
    assert row(Candidate(id="t", category="inbox"), focus=None)["focus_match"] == 0.0


def test_there_is_an_end_to_everything() -> None:
    found = row(Candidate(id="t", category="x", len_chars=10**9, effort_min=1e9, hours_since_shown=1e9))
    assert (found["length"], found["effort"], found["recency"]) == (1.0, 1.0, 0.0)


@given(
    hour=st.floats(0, 24, exclude_max=True),
    length=st.integers(0, 10**9),
    effort=st.none() | st.floats(0, 1e9),
    since=st.none() | st.floats(0, 1e9),
)
def test_every_dimension_is_within_minus_one_and_one(
    hour: float, length: int, effort: float | None, since: float | None
) -> None:
    candidate = Candidate(id="t", category="inbox", len_chars=length, effort_min=effort, hours_since_shown=since)
    assert all(-1 <= value <= 1 for value in row(candidate, hour).values())
