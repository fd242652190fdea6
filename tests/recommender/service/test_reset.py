"""Users who are forgotten, over HTTP."""

import pytest

from tests.recommender.service.asking import request, reward
from tests.recommender.service.conftest import Service


def test_every_policy_forgets(service: Service) -> None:
    for policy in ("egreedy", "egreedy/v2", "linucb"):
        service.json_answer(f"/score/{policy}", request("e1"))
    service.json_answer("/score", request("e1", "u2"))
    assert service.json_answer("/reset", {"user_id": "u1"}) == {
        "user_id": "u1",
        "cleared": ["egreedy", "egreedy/v2", "linucb"],
    }
    assert service.json_answer("/reset", {"user_id": "u1"})["cleared"] == []
    assert service.post("/reward", reward("e1")).status == 404
    assert [path.name for path in service.states.glob("*.json")] == ["u2_egreedy.json"]


@pytest.mark.parametrize("body", [{}, {"user_id": "../u1"}, {"user_id": "u1", "x": 1}, {"user_id": None}, [], "u1"])
def test_odd_requests_are_refused(service: Service, body: object) -> None:
    service.json_answer("/score", request("e1"))
    assert service.post("/reset", body).status == 422
    assert service.json_answer("/stats/egreedy/u1")["waiting"] == 1
