"""The direct way and FastAPI's own give the same answers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.recommender.service.asking import PATHS, request, reward
from tests.recommender.service.conftest import Service
from tests.web.small_app import Answer, Caller
from tipbench.core.errors import StateDamaged
from tipbench.recommender.service import app as service_app

PROFILE = {"completion_rate": 0.5, "categories": {"inbox": {"shown": 3, "mean_dwell_s": 2.5}}}
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({})
)


@pytest.fixture
def both(made: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> tuple[Service, Service]:
    """Two services over the same states: the second without the direct way."""
    direct = made()
    monkeypatch.setattr(service_app, "direct_endpoints", lambda _: {})
    return direct, made()


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places within, which a value may be put in."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for key, value in entries for found in ((*path, key), *places(value, (*path, key)))]


def changed(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return copy


BODIES = (request("e1", profile_features=PROFILE), reward("e1", profile_features={"any": 1}))
MUTANTS = st.sampled_from(BODIES).flatmap(
    lambda body: st.builds(changed, st.just(body), st.sampled_from(places(body)), SCALARS)
)


def same(one: Answer, other: Answer) -> bool:
    return (one.status, one.body, one.headers) == (other.status, other.body, other.headers)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=MUTANTS)
@example(body=changed(BODIES[0], ("profile_features", "completion_rate"), float("nan")))
@example(body=changed(BODIES[0], ("profile_features", "completion_rate"), float("inf")))
@example(body=changed(BODIES[0], ("profile_features", "completion_rate"), 10**400))
@example(body=changed(BODIES[0], ("candidates", 0, "id"), "NaN"))
@example(body=changed(BODIES[0], ("candidates", 0, "id"), "ü\x85"))
def test_any_body_gets_the_same_answer_both_ways(both: tuple[Service, Service], body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    for path in ("/score/egreedy/v2", "/reward/egreedy/v2"):
        first, second = (service.post(path, content) for service in both)
        assert first.status == second.status  # which one was repeated
        assert same(*(service.post(path, content) for service in both))


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"{", b"\xff", b'{"a":1}{', b'\xef\xbb\xbf{"a":1}', json.dumps(BODIES[0]).encode("utf-16")],
)
def test_odd_bytes_get_the_same_answer_both_ways(both: tuple[Service, Service], content: bytes) -> None:
    assert same(*(service.post("/score", content) for service in both))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "text/plain", "a/b+json"],
)
def test_any_type_of_content_gets_the_same_answer_both_ways(
    both: tuple[Service, Service], path: str, content_type: str
) -> None:
    body = json.dumps(request("e1")).encode()
    Caller(both[0].app)("POST", f"/score{path}", {**both[0].headers, "content-type": "application/json"}, body)
    answers = [
        Caller(service.app)("POST", f"/score{path}", {**service.headers, "content-type": content_type}, body)
        for service in both
    ]
    assert same(*answers)


@pytest.mark.parametrize("error", [StateDamaged("damaged"), OSError(28, "No space left on device"), KeyError("x")])
def test_errors_are_told_the_same_both_ways(
    both: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("tipbench.recommender.recommender.Recommender.score", fail)
    one, other = (service.post("/score/egreedy", request("e1")) for service in both)
    assert (one.status, one.headers) == (other.status, other.headers)
    assert one.status >= 500
    assert one.error["message"][:40] == other.error["message"][:40]  # then comes a number of the log


def test_a_key_is_needed_on_the_direct_way_too(both: tuple[Service, Service]) -> None:
    body = json.dumps(request("e1")).encode()
    for headers in ({}, {"authorization": "Bearer no"}, {"authorization": "Basic eDp5"}):
        answers = [
            Caller(service.app)("POST", "/score", {**headers, "content-type": "application/json"}, body)
            for service in both
        ]
        assert answers[0].status == 401
        assert same(*answers)
