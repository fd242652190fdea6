"""`tipbench recommend move`, as a user types it, with a real PostgreSQL."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.integration.postgres_server import PostgresServer
from tests.integration.recommender.databases import new_schema
from tests.recommender.gates import held_gate
from tests.recommender.making import a_recommender, a_request, a_reward
from tipbench.core.errors import InvalidInput, MissingExtra, StateRefused
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.live import live_now
from tipbench.recommender.store.moving import check_not_left_behind, open_store

PASSWORD = "my-own-secret"


@pytest.fixture
def url(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    url = new_schema(postgres).replace("@", f":{PASSWORD}@", 1)
    monkeypatch.setenv("TIPBENCH_POSTGRESQL_URL", url)
    return url


def _serve(tmp_path: Path, event_id: str) -> int:
    """Scores and rewards in the store that the settings name; how much is learned by then."""
    recommender = a_recommender(tmp_path, store=open_store(Settings()))
    with closing(recommender):
        recommender.score("egreedy", a_request(event_id))
        return recommender.reward("egreedy", a_reward(event_id)).n


def test_there_and_back(url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _serve(tmp_path, "e1") == 1
    there = tipbench("recommend", "move", "files", "postgresql")
    assert there.status == 0, there.err
    assert "1 states of 1 users are in postgresql://" in there.out
    assert "set TIPBENCH_STATE=postgresql" in there.out
    with pytest.raises(StateRefused, match="tipbench recommend move postgresql files"):
        open_store(Settings())
    marked = (home / "recommender" / "state" / "MOVED").read_text(encoding="utf-8")
    assert PASSWORD not in marked + there.out + there.err

    monkeypatch.setenv("TIPBENCH_STATE", "postgresql")
    assert _serve(tmp_path, "e2") == 2
    back = tipbench("recommend", "move", "postgresql", "files")
    assert back.status == 0, back.err
    with pytest.raises(StateRefused, match="tipbench recommend move files postgresql"):
        open_store(Settings())
    monkeypatch.setenv("TIPBENCH_STATE", "files")
    assert _serve(tmp_path, "e3") == 3


def test_who_is_live_goes_along(url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_gate(home)
    assert tipbench("recommend", "promote", "egreedy/v2", "--yes").status == 0
    assert tipbench("recommend", "move", "files", "postgresql").status == 0
    refused = tipbench("recommend", "rollback", "--yes")
    assert refused.status == 2
    assert "TIPBENCH_STATE=postgresql" in refused.err
    monkeypatch.setenv("TIPBENCH_STATE", "postgresql")
    assert live_now(Settings()) == "egreedy/v2"
    assert tipbench("recommend", "rollback", "--yes").status == 0
    assert tipbench("recommend", "move", "postgresql", "files").status == 0
    monkeypatch.setenv("TIPBENCH_STATE", "files")
    assert live_now(Settings()) == "egreedy"
    assert len((home / "recommender" / "promotions.jsonl").read_bytes().splitlines()) == 2


def test_an_empty_database_beside_states_in_files_is_not_served_from(
    url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _serve(tmp_path, "e1")
    monkeypatch.setenv("TIPBENCH_STATE", "postgresql")
    refused = tipbench("recommend", "serve", "--port", "0")
    assert refused.status == 2
    assert "'tipbench recommend move files postgresql' moves them" in refused.err
    assert PASSWORD not in refused.err
    _serve(tmp_path, "e2")  # somebody began anew on purpose
    with closing(open_store(Settings())) as store:
        check_not_left_behind(store, Settings())


def test_an_empty_database_beside_promotions_in_files_is_not_served_from(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_gate(home)
    assert tipbench("recommend", "promote", "egreedy/v2", "--yes").status == 0
    monkeypatch.setenv("TIPBENCH_STATE", "postgresql")
    refused = tipbench("recommend", "serve", "--port", "0")
    assert refused.status == 2
    assert f"promotions are in {home / 'recommender' / 'promotions.jsonl'}" in refused.err
    assert tipbench("recommend", "move", "files", "postgresql").status == 0
    with closing(open_store(Settings())) as store:
        check_not_left_behind(store, Settings())
    assert live_now(Settings()) == "egreedy/v2"


def test_not_under_a_running_service(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _serve(tmp_path, "e1")
    for name in ("files", "postgresql"):
        monkeypatch.setenv("TIPBENCH_STATE", name)
        with closing(open_store(Settings())):
            refused = tipbench("recommend", "move", "files", "postgresql")
        assert refused.status == 2
        assert "in use; stop every 'tipbench recommend serve'" in refused.err
    assert tipbench("recommend", "move", "files", "postgresql").status == 0


@pytest.mark.parametrize(
    ("words", "settings", "told"),
    [
        (("files", "files"), {}, "both files"),
        (("files", "sqlite"), {}, "'sqlite' is not one of 'files', 'postgresql'"),
        (("files", "postgresql"), {}, "set TIPBENCH_POSTGRESQL_URL to postgresql://user:password@host/name"),
        (
            ("files", "postgresql"),
            {"TIPBENCH_POSTGRESQL_URL": f"mysql://u:{PASSWORD}@h/d"},
            "not the address of a PostgreSQL",
        ),
        (
            ("files", "postgresql"),
            {"TIPBENCH_POSTGRESQL_URL": f"postgresql://u:{PASSWORD}@127.0.0.1:1/d"},
            ":1/d can't be",
        ),
    ],
)
def test_refused_in_one_sentence(
    words: tuple[str, str], settings: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    refused = tipbench("recommend", "move", *words)
    assert refused.status == 2
    assert told in refused.err
    assert PASSWORD not in refused.err


def test_help_has_an_example() -> None:
    assert "tipbench recommend move files postgresql" in tipbench("recommend", "move", "--help").out


def test_a_store_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="no store 'redis' for states; set TIPBENCH_STATE to files or postgresql"):
        open_store(Settings({"TIPBENCH_STATE": "redis"}))
    monkeypatch.setitem(sys.modules, "tipbench.recommender.store.postgresql", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tipbench\[postgresql\]'"):
        open_store(Settings({"TIPBENCH_STATE": "postgresql", "TIPBENCH_POSTGRESQL_URL": "postgresql://h/d"}))


def test_what_is_not_given_is_named_as_the_help_names_it() -> None:
    refused = tipbench("recommend", "move", "files")
    assert refused.status == 2
    assert "move [OPTIONS] SOURCE DESTINATION" in refused.err
    assert "Missing argument 'DESTINATION'" in refused.err
