"""Bodies that can't be used: 422 in our words, and nothing changes."""

import json
from typing import Any

import pytest

from tests.recommender.service.asking import PATHS, request
from tests.recommender.service.conftest import Service

CANDIDATE = {"id": "a", "category": "c"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"user_id": NaN}', "is not JSON (line 1, column 13); JSON has no NaN or Infinity"),
        (b'{"user_id": -Infinity}', "JSON has no NaN or Infinity"),
        (b'{"user_id": "NaN"', "is not JSON (line 1, column 17)"),
        (b"[" * 300, "is nested too deeply (line 1, column 202)"),
        (b'{"reward": ' + b"9" * 5000 + b"}", "has a number with too many digits"),
        (b'{"user_id": "\\ud800"}', "is not JSON"),
        (b'{"user_id": "\xff"}', "is not JSON"),
        (b"\x00", "is not JSON"),
    ],
)
def test_what_is_no_json_is_told_by_its_place(service: Service, body: bytes, message: str) -> None:
    for path in ("/score", "/reward", "/reset"):
        refused = service.post(path, body)
        assert refused.status == 422
        assert message in refused.error["message"]
        assert ("NaN" in refused.error["message"]) == ("NaN or" in message)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"candidates": []}, "body.candidates: should have at least 1 entry (given: 0)"),
        (
            {"candidates": [{**CANDIDATE, "id": str(number)} for number in range(201)]},
            "body.candidates: should have at most 200 entries (given: 201)",
        ),
        ({"candidates": [CANDIDATE] * 2}, "body.candidates: should name each candidate once; 'a' appears twice"),
        ({"candidates": [{"id": "a"}]}, "body.candidates.0.category: is missing"),
        ({"candidates": {"a": 1}}, "body.candidates: should be a list"),
        ({"context": {"hour": 24}}, "body.context.hour: should be below 24.0 (given: 24)"),
        ({"context": {"hour": -0.1}}, "body.context.hour: should be at least 0.0 (given: -0.1)"),
        ({"context": {"hour": "9"}}, "body.context.hour: should be a number (given: '9')"),
        ({"context": {"hour": True}}, "body.context.hour: should be a number (given: true)"),
        ({"user_id": "../u"}, "body.user_id: should be of the form ^[A-Za-z0-9_-]{1,64}$ (given: '../u')"),
        ({"user_id": "u\n"}, r"body.user_id: should be of the form ^[A-Za-z0-9_-]{1,64}$ (given: 'u\n')"),
        ({"event_id": ""}, "body.event_id: should be of the form ^[A-Za-z0-9_.:-]{1,64}$ (given: '')"),
        ({"more": 1}, "body.more: is not a known field (given: 1)"),
        ({"profile_features": {"mood": 1}}, "body.profile_features.mood: is not a known field (given: 1)"),
        ({"profile_features": {"categories": {"c": 3}}}, "body.profile_features.categories.c: should be an object"),
    ],
)
def test_every_problem_in_our_words(service: Service, path: str, change: dict[str, Any], problem: str) -> None:
    refused = service.post(f"/score{path}", {**request("e1"), **change})
    assert refused.status == 422
    assert [json_answer[: len(problem)] for json_answer in refused.error["problems"]] == [problem]
    assert not list(service.states.glob("*.json"))


def test_the_largest_request_is_no_problem(service: Service) -> None:
    many = [{"id": str(number), "category": "c"} for number in range(200)]
    assert len(service.json_answer("/score", request("e1", candidates=many))["ranking"]) == 200


def test_numbers_without_end_are_no_numbers(service: Service) -> None:
    for number in ("9" * 400, "1e999", "-1e999"):
        body = json.dumps(request("e1", context={"hour": "HERE"})).replace('"HERE"', number)
        assert service.post("/score", body.encode()).status == 422


def test_a_body_says_what_it_is(service: Service) -> None:
    from tests.web.small_app import Caller

    refused = Caller(service.app)("POST", "/score", service.headers, json.dumps(request("e1")).encode())
    assert refused.error["problems"] == ["body: should be sent with the header 'Content-Type: application/json'"]
