"""What is known of a user, over HTTP."""

import pytest

from tests.recommender.service.asking import request, reward
from tests.recommender.service.conftest import Service

POLICIES = {"egreedy": 7, "egreedy/v2": 12, "linucb": 7, "ucb/v3": 16}  # with one category


@pytest.mark.parametrize("policy", POLICIES)
def test_everything_that_was_learned_is_shown(service: Service, policy: str) -> None:
    service.json_answer(f"/score/{policy}", request("e1"))
    service.json_answer(f"/score/{policy}", request("e2"))
    for _ in range(2):
        service.json_answer(f"/reward/{policy}", reward("e1", 0.5))
    known = service.json_answer(f"/stats/{policy}/u1")
    assert set(known) == {
        *(
            "user_id",
            "policy",
            "feature_version",
            "prior",
            "parameters",
            "n",
            "epsilon",
            "mean_reward",
            "theta",
            "lambda",
        ),
        *("condition", "waiting", "duplicates", "late", "updated_ms"),
    }
    assert (known["n"], known["mean_reward"], known["waiting"], known["duplicates"]) == (1, 0.5, 1, 1)
    assert known["updated_ms"] == round(service.clock.now * 1000)
    assert len(known["theta"]) == POLICIES[policy]
    assert known["parameters"]["ridge"] == known["lambda"] == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_of_somebody_new_nothing_is_known_and_nothing_is_made(service: Service, policy: str) -> None:
    known = service.json_answer(f"/stats/{policy}/nobody")
    assert (known["n"], known["mean_reward"], known["updated_ms"]) == (0, None, None)
    assert not list(service.states.glob("*.json"))


@pytest.mark.parametrize("user", ["a%20b", "x" * 65, "%C3%A9", "a.b", "%25", "u1.json", "a:b"])
@pytest.mark.parametrize("policy", POLICIES)
def test_odd_users_are_refused(service: Service, policy: str, user: str) -> None:
    refused = service.get(f"/stats/{policy}/{user}")
    assert refused.status == 422
    assert refused.error["problems"][0].startswith("path.user_id: should be of the form")


@pytest.mark.parametrize("user", ["..", "%2e%2e", "a%2Fb", "a/b", "%00", "..%2f..%2fkey", "%5c"])
def test_paths_lead_nowhere_else(service: Service, user: str) -> None:
    assert service.get(f"/stats/egreedy/{user}").status in (400, 404)


def test_a_path_that_is_a_policys_name_is_the_policy(service: Service) -> None:
    """/stats/egreedy/v2 told what version 1 knew of a user called "v2"."""
    for path in ("/stats/egreedy", "/stats/egreedy/v2", "/stats/linucb"):
        refused = service.get(path)
        assert refused.status == 422
        assert "user_id" in refused.text
        json_answer = service.json_answer(f"{path}?user_id=v2")
        assert (json_answer["policy"], json_answer["user_id"]) == (path.removeprefix("/stats/"), "v2")
    assert service.json_answer("/stats/egreedy/v2/v2")["policy"] == "egreedy/v2"
