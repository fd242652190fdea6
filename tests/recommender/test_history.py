"""What a user did, and the profile that comes of it."""

import math

import pytest

from tipbench.recommender.history import History
from tipbench.recommender.records import CategoryProfile, Profile


def test_counts_are_kept_by_category() -> None:
    history = History()
    history.observe("inbox", "completed", 6.0, 30.0)
    history.observe("inbox", "dismissed", 7.0, 10.0)
    history.observe("rest", "ignored", 22.0, 0.0)
    profile = history.profile()
    inbox, rest = profile.categories["inbox"], profile.categories["rest"]
    assert (inbox.shown, inbox.completed, inbox.dismissed, inbox.mean_dwell_s) == (2, 1, 1, 20.0)
    assert [inbox.hour_sin, inbox.hour_cos] == pytest.approx([1.0, 0.0])
    assert (rest.shown, rest.completed, rest.dismissed, rest.mean_dwell_s) == (1, 0, 0, 0.0)
    assert profile.completion_rate is None


def test_each_dwell_is_clipped_and_not_only_their_mean() -> None:
    history = History()
    history.observe("inbox", "ignored", 6.0, 86_400.0)
    history.observe("inbox", "ignored", 6.0, 0.0)
    assert history.profile().categories["inbox"].mean_dwell_s == 300.0


def test_a_flat_profile_is_of_the_user_as_a_whole() -> None:
    history = History()
    for category, hour in (("inbox", 23.0), ("rest", 1.0)):
        history.observe(category, "completed", hour, 60.0)
        history.observe(category, "dismissed", 12.0, 0.0)
    flat = history.flat_profile()
    assert (flat.completion_rate, flat.dismiss_rate, flat.mean_dwell_s, flat.tip_volume) == (0.5, 0.5, 30.0, 4.0)
    assert flat.preferred_hour is not None
    assert math.cos(math.tau * flat.preferred_hour / 24) == pytest.approx(1.0)  # midnight, whichever way it is written
    assert flat.categories == {}


def test_nobody_knows_a_user_who_was_shown_nothing() -> None:
    assert History().flat_profile() == History().profile() == Profile()


def test_what_was_declared_is_there_from_the_start_and_is_added_to() -> None:
    declared = Profile(
        completion_rate=0.4,
        preferred_hour=8.0,
        categories={"inbox": CategoryProfile(shown=4.0, completed=3.0), "rest": CategoryProfile(shown=1.0)},
    )
    history = History(declared)
    assert history.profile() == declared
    history.observe("inbox", "completed", 6.0, 30.0)
    history.observe("health", "dismissed", 7.0, 10.0)
    profile = history.profile()
    inbox = profile.categories["inbox"]
    assert (profile.completion_rate, profile.preferred_hour) == (0.4, 8.0)
    assert (inbox.shown, inbox.completed, inbox.dismissed, inbox.mean_dwell_s) == (5, 4, 0, 30.0)
    assert profile.categories["rest"] == declared.categories["rest"]
    assert profile.categories["health"].shown == 1


def test_a_flat_profile_goes_by_counts_as_soon_as_there_are_any() -> None:
    as_a_whole = Profile(completion_rate=0.4, tip_volume=7.0)
    history = History(as_a_whole)
    assert history.flat_profile() == as_a_whole
    history.observe("inbox", "completed", 6.0, 30.0)
    assert (history.flat_profile().completion_rate, history.flat_profile().tip_volume) == (1.0, 1.0)
    by_category = History(Profile(categories={"inbox": CategoryProfile(shown=4.0, completed=1.0, mean_dwell_s=9.0)}))
    flat = by_category.flat_profile()
    assert (flat.completion_rate, flat.mean_dwell_s, flat.tip_volume) == (0.25, 9.0, 4.0)


def test_completions_all_around_the_clock_prefer_no_hour() -> None:
    history = History()
    history.observe("inbox", "completed", 0.0, 1.0)
    history.observe("inbox", "completed", 12.0, 1.0)
    assert history.flat_profile().preferred_hour is None


@pytest.mark.parametrize(("hour", "dwell_s"), [(24.0, 1.0), (-0.1, 1.0), (math.nan, 1.0), (1.0, -1.0), (1.0, math.inf)])
def test_what_can_not_have_happened_is_refused(hour: float, dwell_s: float) -> None:
    history = History()
    with pytest.raises(ValueError, match="the hour"):
        history.observe("inbox", "completed", hour, dwell_s)
    assert history.profile() == Profile()
