"""What may be asked."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from tests.recommender.making import a_request, candidates
from tipbench.recommender.records import Candidate, CategoryProfile, Context, Profile, Request, Reward, Source


def made(**changes: Any) -> Request:
    data = a_request().model_dump() | changes
    return Request.model_validate(data)


@pytest.mark.parametrize("user_id", ["", "..", "../u", "a/b", "a b", "a\n", "ü", "u" * 65, "a.json", "\x00", ".locks"])
def test_user_ids_that_could_leave_the_folder_are_refused(user_id: str) -> None:
    with pytest.raises(ValidationError, match="user_id"):
        made(user_id=user_id)


@pytest.mark.parametrize("user_id", ["u", "A-b_9", "u" * 64, "-", "_"])
def test_user_ids_of_letters_digits_and_dashes_are_taken(user_id: str) -> None:
    assert made(user_id=user_id).user_id == user_id


@pytest.mark.parametrize("hour", [-0.001, 24.0, math.nan, math.inf, "9", None, True])
def test_hours_are_within_a_day(hour: Any) -> None:
    with pytest.raises(ValidationError, match="hour"):
        Context(hour=hour)


def test_candidates_are_told_apart_and_neither_none_nor_too_many() -> None:
    assert len(made(candidates=candidates(200)).candidates) == 200
    for count in (0, 201):
        with pytest.raises(ValidationError, match="candidates"):
            made(candidates=candidates(count))
    with pytest.raises(ValidationError, match="'t0' appears twice"):
        made(candidates=[*candidates(2), *candidates(1)])


@pytest.mark.parametrize("reward", [-1.001, 1.001, math.nan, math.inf, "1", True, None])
def test_rewards_are_between_minus_one_and_one(reward: Any) -> None:
    with pytest.raises(ValidationError, match="reward"):
        Reward(user_id="u", event_id="e", reward=reward)


def test_nothing_is_taken_that_is_not_known() -> None:
    with pytest.raises(ValidationError, match="profil"):
        made(profil={})
    with pytest.raises(ValidationError, match="completion_rte"):
        Profile.model_validate({"completion_rte": 0.5})


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, -math.inf, True, False])
def test_what_is_no_measurement_is_not_known(unknown: Any) -> None:
    entry = CategoryProfile(shown=unknown, hour_sin=unknown)
    assert (entry.shown, entry.hour_sin) == (None, None)
    assert Profile(completion_rate=unknown, preferred_hour=unknown) == Profile()


@pytest.mark.parametrize(
    "wrong", [{"completion_rate": 1.1}, {"preferred_hour": 24.0}, {"tip_volume": -1.0}, {"mean_dwell_s": "long"}]
)
def test_a_measurement_that_can_not_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Profile.model_validate(wrong)


@pytest.mark.parametrize("text", ["", "a\x00b", "a\nb", "x" * 129, "\ud800"])
def test_names_are_printable_and_not_endless(text: str) -> None:
    with pytest.raises(ValidationError, match="category"):
        Candidate(id="t", category=text)


def test_a_source_names_a_run_and_a_cell() -> None:
    assert Source(run_id="0" * 32, cell="a" * 64)
    for run_id, cell in (("../../x", "a" * 64), ("0" * 32, "no cell"), ("0" * 31, "a" * 64)):
        with pytest.raises(ValidationError):
            Source(run_id=run_id, cell=cell)


def test_a_request_survives_json() -> None:
    request = a_request(profile=Profile(completion_rate=0.1, categories={"inbox": CategoryProfile(shown=0.1)}))
    assert Request.model_validate_json(request.model_dump_json()) == request
