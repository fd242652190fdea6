"""Odd requests to the real service: no 5xx, one error shape, no state changed by what is refused, no file elsewhere."""

import hashlib
import json
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.integration.recommending import HEADERS, Recommending, recommending
from tests.recommender.service.asking import request, reward

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
THERE = {"user_id": "u1", "event_id": "e1"}
QUIET = [HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large]
QUICK = settings(max_examples=20, deadline=None, suppress_health_check=QUIET)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
POSTS = [
    f"/{verb}{policy}"
    for verb in ("score", "reward")
    for policy in ("", "/egreedy", "/egreedy/v2", "/linucb", "/ucb/v3")
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("fuzzed") / "home"  # nothing but these tests writes beside it
    home.mkdir(mode=0o700)
    return home


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Recommending]:
    """With something in every state."""
    with recommending(TIPBENCH_HOME=str(home)) as served:
        with served.client() as client:
            for policy in ("egreedy", "egreedy/v2", "linucb", "ucb/v3"):
                for event in ("e0", "e1"):
                    client.post(f"/score/{policy}", json=request(event)).raise_for_status()
                client.post(f"/reward/{policy}", json=reward("e0")).raise_for_status()
        yield served


@pytest.fixture(scope="module")
def client(served: Recommending) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


def _digest(home: Path) -> str:
    """Of all states."""
    found = hashlib.sha256()
    for path in sorted((home / "recommender" / "state").glob("*.json")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _check(home: Path, before: str, answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert set(answer.json()) == {"error"}
        assert set(answer.json()["error"]) == {"code", "message", "problems"}
        assert "pydantic" not in answer.text
        assert _digest(home) == before


@pytest.fixture(scope="module", autouse=True)
def _nothing_elsewhere(served: Recommending, home: Path) -> Iterator[None]:
    """After all of them: every file is where files belong, and every state is whole."""
    yield
    here = home / "recommender"
    allowed = string.ascii_letters + string.digits + "_-."
    for path in home.rglob("*"):
        if path.is_file():
            state = here / "state"
            assert path.parent in (state, state / ".locks", state / ".journal", here / "decisions", here / "signals")
            assert set(path.name) <= set(allowed)
    with served.client() as client:
        for policy in ("egreedy", "egreedy/v2", "linucb", "ucb/v3"):
            assert client.get(f"/stats/{policy}/u1").status_code == 200
    for path in (here / "state").glob("*.json"):
        assert path.name.startswith(json.loads(path.read_bytes())["user_id"])
    assert [path.name for path in home.parent.glob("*.json")] == []


def _ask_everything(served: Recommending, ask: Callable[[Any], None]) -> None:
    """Some odd requests of every operation. (By hand: one server serves them all.)"""
    document: Any = schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=HEADERS)
    asked = []
    for found in document.get_all_operations():
        operation = found.ok()
        QUICK(given(case=operation.as_strategy())(ask))()
        asked.append(operation.label)
    assert len(asked) == 25


def test_no_request_is_too_odd(served: Recommending, home: Path) -> None:
    def ask(case: Any) -> None:
        if isinstance(case.body, dict) and crc32(repr(case.body).encode("utf-8", "replace")) % 2:
            case.body.update({name: value for name, value in THERE.items() if name in case.body})
        before = _digest(home)
        answer = case.call_and_validate(headers=HEADERS, checks=CHECKS, timeout=30)
        if answer.status_code >= 400:
            assert _digest(home) == before

    _ask_everything(served, ask)


def test_nothing_is_answered_without_the_key(served: Recommending, home: Path) -> None:
    answered = set()
    before = _digest(home)

    def ask(case: Any) -> None:
        case.headers.pop("Authorization", None)
        answer = case.call(timeout=30)
        if answer.status_code < 400:
            answered.add(case.operation.label)
        else:
            assert answer.status_code in (400, 401), case.as_curl_command()

    _ask_everything(served, ask)
    assert answered == {"GET /health"}
    assert _digest(home) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
NUMBER = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.floats(0, 24), st.text(max_size=3))
NAME = st.text(max_size=8) | st.sampled_from(["inbox", "focus", "../x", "a\x00b", "\u202e", "x" * 129])
CANDIDATE = st.fixed_dictionaries(
    {"id": NAME, "category": NAME},
    optional={"len_chars": NUMBER, "effort_min": NUMBER, "hours_since_shown": NUMBER, "source": JSON},
)
USER = st.sampled_from(["u1", "u2", "", "..", "../u1", "u/1", "u\n", "x" * 65, "CON", "-", "é"]) | JSON
IN_CATEGORY = st.fixed_dictionaries({}, optional=dict.fromkeys(("shown", "completed", "hour_sin"), NUMBER))
PROFILE = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("completion_rate", "dismiss_rate", "mean_dwell_s", "preferred_hour", "tip_volume"), NUMBER),
        "categories": st.dictionaries(NAME, IN_CATEGORY, max_size=3),
    },
)
GOOD = {"/score": request("e2", "u2"), "/reward": reward("e1", user_id="u2")}
ODD = {
    "/score": st.fixed_dictionaries(
        {},
        optional={
            "user_id": USER,
            "event_id": st.sampled_from(["e1", "e2", "e:3", "", "e 4"]) | JSON,
            "context": st.fixed_dictionaries({"hour": NUMBER}, optional={"focus_category": NAME | st.none()}) | JSON,
            "candidates": st.lists(CANDIDATE, max_size=5) | JSON,
            "profile_features": PROFILE | JSON,
            "reward": NUMBER,
        },
    ),
    "/reward": st.fixed_dictionaries(
        {},
        optional={
            "user_id": USER,
            "event_id": st.sampled_from(["e0", "e1", "none"]) | JSON,
            "reward": NUMBER | st.floats(-1, 1),
            "profile_features": PROFILE | JSON,
        },
    ),
}


@pytest.mark.parametrize("path", POSTS)
def test_nearly_good_bodies(path: str, client: httpx.Client, home: Path) -> None:
    kind = "/" + path.split("/")[1]
    statuses = set()
    client.post(path.replace("reward", "score"), json=request("e1", "u2")).raise_for_status()

    @settings(MANY, max_examples=60)
    @example(odd={})
    @example(odd={"reward": "x"})
    @given(odd=ODD[kind])
    def ask(odd: dict[str, Any]) -> None:
        before = _digest(home)
        content = json.dumps({**GOOD[kind], **odd})  # with NaN and Infinity, as Python writes them
        answer = client.post(path, content=content.encode(), headers={"Content-Type": "application/json"})
        _check(home, before, answer)
        statuses.add(answer.status_code)

    ask()
    assert {200, 422} <= statuses


@MANY
@given(path=st.sampled_from([*POSTS, "/reset"]), body=st.binary(max_size=60) | JSON.map(json.dumps).map(str.encode))
def test_bodies_of_any_bytes(path: str, body: bytes, client: httpx.Client, home: Path) -> None:
    before = _digest(home)
    _check(home, before, client.post(path, content=body, headers={"Content-Type": "application/json"}))


@MANY
@given(policy=st.sampled_from(["egreedy", "egreedy/v2", "linucb", "ucb/v3", "none"]), user=st.text(max_size=70))
def test_users_of_any_text_in_paths(policy: str, user: str, client: httpx.Client, home: Path) -> None:
    before = _digest(home)
    _check(home, before, client.get(f"/stats/{policy}/{quote(user, safe='', errors='replace')}"))
    assert _digest(home) == before
