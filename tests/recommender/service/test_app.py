"""The assembled service: what is open, what its document says, what it closes."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from tests.recommender.gates import V2
from tests.recommender.service.conftest import lived
from tests.web.small_app import Caller
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.promotion.files import FilePromotions
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.service.app import check_service, service_key, serving_server, wanted_shadows
from tipbench.web.authentication import open_access

KEY = "a-serving-key-for-tests-only"
GOOD = {"authorization": f"Bearer {KEY}"}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    monkeypatch.setenv("TIPBENCH_SERVING_KEY", KEY)
    made = serving_server(Settings())
    yield made
    asyncio.run(lived(made))


def test_without_the_key_nothing_but_health_and_the_empty_page_of_docs_answers(app: FastAPI) -> None:
    call = Caller(app)
    document = json.loads(call("GET", "/openapi.json", GOOD).body)
    for path, operations in document["paths"].items():
        for method in operations:
            status = call(method.upper(), path.replace("{user_id}", "u1")).status
            assert status == (200 if path == "/health" else 401), path
    for path in ("/openapi.json", "/redoc", "/nothing"):
        assert call("GET", path).status == 401
    assert "/score" not in call("GET", "/docs").body.decode()
    for name, status in (("docs.js", 200), ("swagger-ui-bundle.js", 200), ("../app.py", 400), ("key", 404)):
        assert call("GET", f"/docs/files/{name}").status == status


def test_the_document_names_every_endpoint_and_its_errors(app: FastAPI) -> None:
    paths = json.loads(Caller(app)("GET", "/openapi.json", GOOD).body)["paths"]
    policies = tuple(SERVED)
    assert {"egreedy", "egreedy/v2", "linucb"} <= set(policies)
    assert set(paths) == {
        *("/health", "/score", "/reward", "/reset", "/shadows"),
        *(f"/{verb}/{policy}" for verb in ("score", "reward") for policy in policies),
        *(f"/stats/{policy}" for policy in policies),
        *(f"/stats/{policy}/{{user_id}}" for policy in policies),
    }
    assert {"200", "202", "404", "409", "422", "503"} <= set(paths["/reward"]["post"]["responses"])
    assert paths["/score"]["post"]["security"] == [{"HTTPBearer": []}]


def test_the_admins_token_does_not_open_it(app: FastAPI, home: Path) -> None:
    access = open_access(home, lambda: 0.0)
    token = access.tokens.ensure_admin()
    access.tokens.close()
    assert Caller(app)("GET", "/shadows", {"authorization": f"Bearer {token}"}).status == 401


def test_what_it_keeps_is_private(app: FastAPI, home: Path) -> None:
    assert (home / "recommender").stat().st_mode & 0o777 == 0o700
    assert (home / "recommender" / "state").stat().st_mode & 0o777 == 0o700


def test_a_made_key_is_kept_beside_the_states(home: Path) -> None:
    made = service_key(Settings()).ensure()
    assert made
    assert service_key(Settings()).matches(made)
    assert (home / "recommender" / "key").exists()


def test_what_it_opened_is_closed_with_it(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Recommender] = []
    monkeypatch.setattr(Recommender, "close", lambda recommender: closed.append(recommender))
    asyncio.run(lived(app))
    monkeypatch.undo()
    assert len(closed) == 1


def test_shadows_are_named_by_setting_and_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPBENCH_SHADOWS", " a, b ,,a")
    assert wanted_shadows(Settings(), ["c", "b"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("TIPBENCH_SHADOWS", "nobody", "there is no shadow policy 'nobody'"),
        ("TIPBENCH_REWARD_WINDOW", "soon", "TIPBENCH_REWARD_WINDOW must be seconds"),
        ("TIPBENCH_STATE", "parchment", "parchment"),
    ],
)
def test_settings_of_which_no_service_can_be_made_are_told(
    setting: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = check_service(Settings(), [])
    assert checked.summary.startswith("Live policy: egreedy. Shadows: none. User states are stored in files: ")
    monkeypatch.setenv(setting, value)
    with pytest.raises(InvalidInput, match=told):
        check_service(Settings(), [])


def test_whoever_starts_it_is_told_when_the_live_policy_is_not_what_was_promoted(home: Path) -> None:
    assert check_service(Settings(), []).changes == []
    before = {**V2.candidate, "feature_version": "v2-beta"}
    history = FilePromotions(home / "recommender" / "promotions.jsonl")
    history.append(V2.model_copy(update={"candidate": before}), 0)
    checked = check_service(Settings(), [])
    assert checked.changes == ["egreedy/v2's feature version was 'v2-beta', but is 'v2' now"]
    assert checked.summary.startswith("Live policy: egreedy/v2. ")
