"""Scores over HTTP."""

import pytest

from tests.recommender.service.asking import PATHS, request, reward
from tests.recommender.service.conftest import Service

SHAPE = {
    "event_id",
    "chosen",
    "propensity",
    "epsilon",
    "n",
    "policy",
    "feature_version",
    "prior",
    "ranking",
    "repeated",
}


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_has_its_shape(service: Service, path: str) -> None:
    json_answer = service.json_answer(f"/score{path}", request("e1"))
    assert set(json_answer) == SHAPE
    assert json_answer["policy"] == (path.removeprefix("/") or "egreedy")
    assert json_answer["feature_version"] == ("v2" if "v2" in path else "v1")
    assert (json_answer["event_id"], json_answer["n"], json_answer["repeated"]) == ("e1", 0, False)
    assert {row["id"] for row in json_answer["ranking"]} == {"t1", "t2"}
    assert sum(row["propensity"] for row in json_answer["ranking"]) == pytest.approx(1)
    chosen = next(row for row in json_answer["ranking"] if row["id"] == json_answer["chosen"])
    assert chosen["propensity"] == json_answer["propensity"]


@pytest.mark.parametrize("path", PATHS)
def test_the_same_event_has_the_same_answer_and_another_request_a_conflict(service: Service, path: str) -> None:
    first = service.json_answer(f"/score{path}", request("e1"))
    assert service.json_answer(f"/score{path}", request("e1")) == {**first, "repeated": True}
    refused = service.post(f"/score{path}", request("e1", context={"hour": 10.5}))
    assert (refused.status, refused.error["code"]) == (409, "conflict")
    assert "use a new event id" in refused.error["message"]


def test_the_best_comes_first(service: Service) -> None:
    service.json_answer("/score", request("e1", candidates=[{"id": "t1", "category": "inbox"}]))
    service.json_answer("/reward", reward("e1", 1))
    ranking = service.json_answer("/score", request("e2"))["ranking"]
    assert [row["id"] for row in ranking] == ["t1", "t2"]
    assert ranking[0]["score"] > ranking[1]["score"]


def test_profiles_change_what_v2_sees(service: Service) -> None:
    profile = {"categories": {"inbox": {"shown": 9, "completed": 9}}, "tip_volume": 3}
    alone, theta = [{"id": "t1", "category": "inbox"}], {}
    for user, known in (("u1", profile), ("u2", None)):
        service.json_answer("/score/egreedy/v2", request("e1", user, candidates=alone, profile_features=known))
        service.json_answer("/reward/egreedy/v2", reward("e1", 1, user))
        theta[user] = service.json_answer(f"/stats/egreedy/v2/{user}")["theta"]
    assert theta["u1"]["completion"] > 0
    assert theta["u2"]["completion"] == 0


def test_names_that_a_terminal_would_obey_come_back_written_out(service: Service) -> None:
    odd = "t\u202e\u009b2J é"
    answer = service.post("/score", request("e1", candidates=[{"id": odd, "category": "c"}]))
    assert "\u202e" not in answer.text
    assert service.json_answer("/score", request("e1", candidates=[{"id": odd, "category": "c"}]))["chosen"] == odd


def test_states_of_other_features_are_refused_and_damaged_ones_told(service: Service) -> None:
    service.json_answer("/score/egreedy", request("e1"))
    state = service.states / "u1_egreedy.json"
    content = state.read_bytes()
    state.write_bytes(content.partition(b',"crc"')[0].replace(b'"v1"', b'"v0"') + b"}")
    refused = service.post("/score/egreedy", request("e2"))
    assert refused.status == 409
    assert "reset the user" in refused.error["message"]
    state.write_bytes(content[:-9])
    damaged = service.post("/score/egreedy", request("e2"))
    assert damaged.status == 500
    assert str(service.home) not in damaged.text
    assert state.read_bytes() == content[:-9]
    assert service.json_answer("/reset", {"user_id": "u1"})["cleared"] == ["egreedy"]
    assert service.post("/score/egreedy", request("e2")).status == 200


def test_a_folder_that_can_not_be_written_is_told_as_such(service: Service) -> None:
    service.json_answer("/score", request("e1"))
    for number in range(1024):
        (service.states / f".spare-{number:04d}").unlink(missing_ok=True)
        (service.states / f".spare-{number:04d}").mkdir()
    refused = service.post("/score", request("e1", "u9"))
    assert (refused.status, refused.error["code"]) == (503, "service_unavailable")
    assert "nothing can be stored here right now (Is a directory)" in refused.error["message"]
    assert str(service.home) not in refused.text
