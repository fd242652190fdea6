"""What a replay rests on, in sentences."""

from typing import Any

from tipbench.recommender.replay.verdict import basis, estimate_text


def _found(**more: Any) -> dict[str, Any]:
    return {
        "candidate": {"name": "egreedy/v2", "feature_version": "v2"},
        "log": {"decisions": 8000, "left_out": {"no_reward": 3, "no_chance": 0, "of_later": 2}},
        "learned": 4000,
        "evaluated": 4000,
        "with_profile": 4000,
        "users": 40,
        "rules": {"least_effective": 200.0},
        "effective_sample": 455.2,
        "largest_weight": 9.1,
        **more,
    }


def test_what_was_used_and_what_was_left_out() -> None:
    assert basis(_found()) == [
        "8,000 decisions can be replayed; the candidate learned from 4,000 and was tested on 4,000 of 40 users.",
        "Left out: 3 got no reward; 2 of_later.",
        "Effective sample: 455; 200 are needed. Largest weight: 9.1.",
    ]


def test_where_the_log_is_and_how_far_it_goes_back() -> None:
    log = {**_found()["log"], "folder": "/data/\x1b[2Jdecisions"}
    assert basis(_found(log=log))[-1] == "Log: /data/\\u001b[2Jdecisions"
    times = {"first_ms": 1_800_000_000_000, "last_ms": 1_800_086_400_000}
    told = ", decisions from 2027-01-15 08:00 UTC to 2027-01-16 08:00 UTC"
    assert basis(_found(log=log | times))[-1].endswith(told)


def test_version_2_without_profiles_is_told() -> None:
    assert any("10 of these came without profile_features" in line for line in basis(_found(with_profile=3990)))
    told = basis(_found(with_profile=0, candidate={"name": "linucb", "feature_version": "v1"}))
    assert not any("profile_features" in line for line in told)


def test_an_estimate_with_what_is_known_of_it() -> None:
    assert estimate_text({"mean": 0.2, "margin": 0.05}, "+") == "+0.2000 ± 0.0500"
    assert estimate_text({"mean": 0.2, "margin": None}) == "0.2000"
    assert estimate_text({"mean": None, "margin": None}) == "not known"
