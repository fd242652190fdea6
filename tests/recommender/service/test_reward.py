"""Rewards over HTTP."""

import pytest

from tests.recommender.service.asking import PATHS, request, reward
from tests.recommender.service.conftest import Service


@pytest.mark.parametrize("path", PATHS)
def test_a_reward_counts_once(service: Service, path: str) -> None:
    more = {} if path else {"policy": "egreedy"}
    service.json_answer(f"/score{path}", request("e1"))
    assert service.json_answer(f"/reward{path}", reward("e1")) == {"status": "applied", "n": 1, **more}
    assert service.json_answer(f"/reward{path}", reward("e1")) == {"status": "duplicate", "n": 1, **more}
    assert service.post(f"/reward{path}", reward("e1", -0.5)).error["code"] == "conflict"
    assert service.post(f"/reward{path}", reward("e2")).status == 404
    assert service.post(f"/reward{path}", reward("e1", user_id="u2")).status == 404


@pytest.mark.parametrize("path", PATHS)
def test_a_late_reward_is_taken_note_of(service: Service, path: str) -> None:
    service.json_answer(f"/score{path}", request("e1"))
    service.clock.now += 7 * 86_400 + 1
    answer = service.post(f"/reward{path}", reward("e1"))
    assert answer.status == 202
    assert '"late"' in answer.text
    assert service.json_answer(f"/stats/{path.removeprefix('/') or 'egreedy'}/u1")["n"] == 0


def test_a_reward_finds_the_policy_that_served(service: Service) -> None:
    service.json_answer("/score/linucb", request("e1"))
    assert service.json_answer("/reward", reward("e1")) == {"status": "applied", "n": 1, "policy": "linucb"}


@pytest.mark.parametrize("profile", [None, {"completion_rate": 0.5}, {"anything": [1, "x"]}, 7])
def test_a_profile_may_come_along_and_is_ignored(service: Service, profile: object) -> None:
    alone = [{"id": "t1", "category": "inbox"}]
    for user in ("u1", "u2"):
        service.json_answer("/score/egreedy/v2", request("e1", user, candidates=alone))
    service.json_answer("/reward/egreedy/v2", reward("e1", profile_features=profile))
    service.json_answer("/reward/egreedy/v2", reward("e1", user_id="u2"))
    first, second = (service.json_answer(f"/stats/egreedy/v2/{user}") for user in ("u1", "u2"))
    assert first["theta"] == second["theta"]
    assert first["n"] == second["n"] == 1
    logged = b"".join(path.read_bytes() for path in (service.home / "recommender" / "decisions").iterdir())
    assert b"anything" not in logged


@pytest.mark.parametrize("value", [1.01, -2, None, "1", True, 1e999])
def test_rewards_are_between_minus_one_and_one(service: Service, value: object) -> None:
    service.json_answer("/score", request("e1"))
    assert service.post("/reward", {**reward("e1"), "reward": value}).status == 422
    assert service.json_answer("/stats/egreedy/u1")["n"] == 0
