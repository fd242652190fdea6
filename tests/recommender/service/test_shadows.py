"""The shadows over HTTP."""

from collections.abc import Callable

from tests.integration.serving import until
from tests.recommender.service.asking import request, reward
from tests.recommender.service.conftest import Service


def test_shadows_are_off_until_they_are_named(made: Callable[..., Service]) -> None:
    (shadow,) = made().json_answer("/shadows")["shadows"]
    assert (shadow["name"], shadow["policy"], shadow["on"]) == ("egreedy-v2-shadow", "egreedy/v2", False)


def test_a_shadow_that_is_on_is_counted(made: Callable[..., Service]) -> None:
    service = made("egreedy-v2-shadow")
    service.json_answer("/score", request("e1"))
    service.json_answer("/score/linucb", request("e1"))  # not the live policy
    until(lambda: service.json_answer("/shadows")["shadows"][0]["counts"]["published"] == 1)
    (shadow,) = service.json_answer("/shadows")["shadows"]
    assert shadow["on"]
    assert shadow["counts"] == {"offered": 1, "published": 1, "full": 0, "late": 0, "failed": 0}


def test_named_policies_and_rewards_are_served_beside_a_shadow_when_nobody_can_tell_who_is_live(
    made: Callable[..., Service],
) -> None:
    service = made("egreedy-v2-shadow")
    service.json_answer("/score", request("e1"))
    until(lambda: service.json_answer("/shadows")["shadows"][0]["counts"]["published"] == 1)
    (service.home / "recommender" / "promotions.jsonl").write_text("nonsense\n", encoding="utf-8")
    assert service.post("/score", request("e2")).status == 500
    assert service.json_answer("/score/egreedy", request("e2"))["policy"] == "egreedy"
    assert service.json_answer("/reward", reward("e1"))["policy"] == "egreedy"
    assert service.json_answer("/shadows")["shadows"][0]["counts"]["offered"] == 1
