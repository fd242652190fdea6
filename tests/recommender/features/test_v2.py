"""The second version of the features: by hand, at its ends, and with whatever a profile may hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recommender.making import a_profile, a_request
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.records import Candidate, CategoryProfile, Profile

TAIL = V2.names[7:]


def tail(profile: Profile | None, category: str = "inbox", hour: float = 6.0) -> dict[str, float]:
    (found,) = V2.rows(a_request(hour=hour, of=[Candidate(id="t", category=category)], profile=profile))
    return dict(zip(TAIL, found[7:], strict=True))


def test_it_begins_with_the_first_version() -> None:
    request = a_request(profile=a_profile())
    assert V2.matrix(request).shape == (10, 12)
    np.testing.assert_array_equal(V2.matrix(request)[:, :7], V1.matrix(request))


@pytest.mark.parametrize("profile", [None, Profile(), Profile(categories={"inbox": CategoryProfile()})])
def test_what_nobody_knows_is_neutral(profile: Profile | None) -> None:
    assert list(tail(profile).values()) == [0.0] * 5


def test_a_category_is_drawn_towards_the_users_own_rate() -> None:
    found = tail(a_profile())
    usual = (5 + 0 + 5 * 0.3) / (12 + 3 + 5)
    assert found["completion"] == pytest.approx(2 * (5 + 5 * usual) / (12 + 5) - 1)
    dismissal = (2 + 5 * 0.3) / (12 + 5)  # of the other category it is not known
    assert found["dismissal"] == pytest.approx(2 * (2 + 5 * dismissal) / (12 + 5) - 1)
    neutral_s = math.sqrt(601) - 1
    usual_s = (12 * 40 + 5 * neutral_s) / (12 + 5)
    assert found["dwell"] == pytest.approx(2 * math.log(1 + (12 * 40 + 5 * usual_s) / 17) / math.log(601) - 1)
    assert found["hour_alignment"] == pytest.approx(2.0 / (5 + 3))  # at six, all of it is the sine's
    assert found["volume"] == pytest.approx(2 * math.log(13) / math.log(1001) - 1)


def test_a_category_that_was_never_shown_has_the_users_own_rate() -> None:
    usual = (5 + 0 + 5 * 0.3) / (12 + 3 + 5)
    found = tail(a_profile(), category="focus")
    assert found["completion"] == pytest.approx(2 * usual - 1)
    assert (found["hour_alignment"], found["volume"]) == (0.0, -1.0)


def test_candidates_are_told_apart_by_category_and_not_by_a_flat_profile() -> None:
    """A number that all candidates share cancels when they are compared: the design has no rank in it."""
    by_category = V2.matrix(a_request(profile=a_profile()))[:, 7:]
    assert len(np.unique(by_category, axis=0)) == 3  # inbox, rest, and those never shown
    flat = Profile(completion_rate=0.4, dismiss_rate=0.2, mean_dwell_s=30.0, preferred_hour=9.0, tip_volume=50.0)
    assert len(np.unique(V2.matrix(a_request(profile=flat))[:, 7:], axis=0)) == 1


def test_a_flat_profile_is_taken() -> None:
    flat = Profile(completion_rate=0.75, dismiss_rate=0.0, mean_dwell_s=600.0, preferred_hour=12.0, tip_volume=1000.0)
    assert tail(flat, hour=12.0) == pytest.approx(dict(zip(TAIL, (0.5, -1.0, 1.0, 1.0, 1.0), strict=True)))
    assert tail(flat, hour=0.0)["hour_alignment"] == pytest.approx(-1.0)


def test_a_flat_value_stands_in_for_what_is_not_known_of_a_category() -> None:
    profile = Profile(dismiss_rate=1.0, categories={"inbox": CategoryProfile(shown=10.0, completed=10.0)})
    found = tail(profile)
    assert found["dismissal"] == 1.0
    assert 0 < found["completion"] < 1


def test_dwell_is_clipped_at_ten_minutes() -> None:
    assert tail(a_profile(mean_dwell_s=600.0)) == tail(a_profile(mean_dwell_s=1e9))
    assert tail(Profile(mean_dwell_s=1e9))["dwell"] == 1.0


amounts = st.none() | st.floats(0, 1e9) | st.integers(0, 50).map(float)
sums = st.none() | st.floats(-1e9, 1e9)
entries = st.builds(
    CategoryProfile,
    shown=amounts,
    completed=amounts,
    dismissed=amounts,
    mean_dwell_s=amounts,
    hour_sin=sums,
    hour_cos=sums,
)
profiles = st.none() | st.builds(
    Profile,
    completion_rate=st.none() | st.floats(0, 1),
    dismiss_rate=st.none() | st.floats(0, 1),
    mean_dwell_s=amounts,
    preferred_hour=st.none() | st.floats(0, 24, exclude_max=True),
    tip_volume=amounts,
    categories=st.dictionaries(st.sampled_from(["inbox", "rest", "other"]), entries),
)


@settings(max_examples=150)
@given(profile=profiles, hour=st.floats(0, 24, exclude_max=True))
def test_every_dimension_is_a_number_within_minus_one_and_one(profile: Profile | None, hour: float) -> None:
    found = V2.matrix(a_request(hour=hour, profile=profile))
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1).all()


@given(shown=st.integers(1, 1000), data=st.data())
def test_more_completions_never_look_worse(shown: int, data: st.DataObject) -> None:
    fewer = data.draw(st.integers(0, shown - 1))
    low, high = (
        tail(Profile(categories={"inbox": CategoryProfile(shown=float(shown), completed=float(done))}))["completion"]
        for done in (fewer, fewer + 1)
    )
    assert low < high
