"""Which MLflow is used: the one that was named and no other; without a name, one line says which."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tests.bench.tracking.store_contract import a_draft
from tipbench.bench.tracking import address
from tipbench.bench.tracking.address import (
    OpenedStore,
    open_store,
    own_database_url,
    remember_experiment,
    store_address,
)
from tipbench.core.errors import InvalidInput, NothingStored, TipbenchError, TrackingUnreachable
from tipbench.core.settings import Settings

PROBE = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"
FOUND = Reply({"experiment": {"experiment_id": "0", "name": "Default"}})


@pytest.fixture(autouse=True)
def no_default_server(monkeypatch: pytest.MonkeyPatch) -> str:
    """Nothing listens at the default address, whatever runs on this machine."""
    url = free_address()
    monkeypatch.setattr(address, "DEFAULT_SERVER", url)
    return url


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Something that looks like MLflow listens there."""
    with StandIn() as running:
        running.on(PROBE, FOUND)
        monkeypatch.setattr(address, "DEFAULT_SERVER", running.url)
        yield running


@pytest.fixture
def own(home: Path, empty_database: Path) -> Path:
    """A database of tipbench's own that is there already."""
    return Path(shutil.copyfile(empty_database, home / "mlflow.db"))


@contextmanager
def opened(url: str | None = None, experiment: str | None = None, **environment: str) -> Iterator[OpenedStore]:
    settings = Settings({"TIPBENCH_HOME": Settings().get("TIPBENCH_HOME"), **environment})
    found = open_store(url, settings, experiment)
    try:
        yield found
    finally:
        found.store.close()


def test_what_is_named_is_used_without_a_word(server: StandIn, own: Path, database: Path) -> None:
    with opened(f"sqlite:///{database}") as found:
        assert (found.store.address, found.notice) == (f"sqlite:///{database}", "")
    with opened("http://elsewhere:1/") as found:
        assert (found.store.address, found.notice) == ("http://elsewhere:1", "")
    assert server.asked == []


def test_the_variable_counts_and_the_flag_goes_before_it(server: StandIn, database: Path) -> None:
    with opened(MLFLOW_TRACKING_URI="http://from-variable:1") as found:
        assert found.store.address == "http://from-variable:1"
    with opened(f"sqlite:///{database}", MLFLOW_TRACKING_URI="http://from-variable:1") as found:
        assert found.store.address == f"sqlite:///{database}"
    assert server.asked == []


def test_a_named_server_that_is_gone_is_never_replaced(own: Path) -> None:
    with opened(free_address()) as found, pytest.raises(TrackingUnreachable):
        found.store.experiments("")


def test_a_server_on_this_machine_is_taken_and_said(server: StandIn, own: Path) -> None:
    with opened() as found:
        assert found.store.address == server.url
        assert found.notice == f"Results go to the MLflow server at {server.url}."


def test_without_a_server_our_own_database_is_taken_and_said(own: Path, no_default_server: str) -> None:
    with opened() as found:
        assert found.store.address == f"sqlite:///{own}"
        assert (
            found.notice
            == f"No MLflow server at {no_default_server}: results are read from tipbench's own database, "
            + (found.store.address)
        )


@pytest.mark.parametrize(
    "answer", [Reply(b"", 403), Reply({"message": "hello"}, 404), Reply(b"<html>", 200), Reply(drops=True)]
)
def test_something_else_at_the_default_address_is_no_server(server: StandIn, own: Path, answer: Reply) -> None:
    server.on(PROBE, answer)
    with opened() as found:
        assert found.store.address == f"sqlite:///{own}"


def test_our_own_database_is_made_only_for_writing(home: Path) -> None:
    with pytest.raises(NothingStored, match="no results yet"):
        open_store(None, Settings())
    assert not (home / "mlflow.db").exists()
    assert own_database_url(Settings()) == f"sqlite:///{home / 'mlflow.db'}"


@pytest.mark.parametrize(("given", "tagged"), [("", False), ("fallback", False), ("always", True)])
def test_texts_are_tags_as_well_where_the_setting_says_so(given: str, tagged: bool, own: Path) -> None:
    with opened(TIPBENCH_ARTIFACT_TAGS=given) as found:
        experiment = found.store.ensure_experiment("tagged", {})
        texts = dict.fromkeys(["candidates.json", "prompt.txt", "raw.txt", "rubric.md"], "text")
        found.store.write_run(experiment, a_draft(texts=texts))
        [run] = found.store.runs(experiment, {})
    tags = {key for key in run.tags if key.startswith("artifact:")}
    assert tags == ({"artifact:candidates.json", "artifact:prompt.txt", "artifact:raw.txt"} if tagged else set())


def test_a_wrong_word_for_tags_is_refused(own: Path) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_ARTIFACT_TAGS must be fallback or always; it is 'yes'"):
        open_store(None, Settings({"TIPBENCH_HOME": str(own.parent), "TIPBENCH_ARTIFACT_TAGS": "yes"}))


def test_a_server_of_ours_uses_the_address_under_which_mlflow_was_found(server: StandIn) -> None:
    server.on(PROBE, Reply({"detail": "Not Found"}, status=404))
    server.on(f"/mlflow{PROBE}", FOUND)
    said: list[str] = []
    assert store_address(server.url, Settings(), said.append) == f"{server.url}/mlflow"
    assert said == [
        f"MLflow was found at {server.url}/mlflow, not at {server.url}: set that address with --mlflow-url or "
        "MLFLOW_TRACKING_URI."
    ]
    assert store_address(f"{server.url}/mlflow", Settings(), said.append) == f"{server.url}/mlflow"
    assert store_address(free_address(), Settings(), said.append)
    assert len(said) == 1


def test_the_default_server_is_found_under_its_prefix_and_stays_one_place(server: StandIn, own: Path) -> None:
    server.on(PROBE, Reply({"detail": "Not Found"}, status=404))
    server.on(f"/mlflow{PROBE}", FOUND)
    for _ in range(2):
        with opened(experiment="tip-bench-1") as found:
            assert (found.store.address, found.store.under_prefix) == (server.url, f"{server.url}/mlflow")
            remember_experiment(Settings(), "tip-bench-1", found.store.address, "tip")


def test_an_experiment_kept_on_a_server_is_not_continued_in_our_own_database(own: Path) -> None:
    remember_experiment(Settings(), "tip-bench-1", "http://bench:5000", "tip")
    with pytest.raises(
        InvalidInput, match=r"'tip-bench-1' was last .* http://bench:5000; add --mlflow-url http://bench:5000"
    ):
        open_store(None, Settings(), "tip-bench-1")
    with opened(experiment="tip-bench-2") as found:
        assert found.store.address == f"sqlite:///{own}"
    with opened(f"sqlite:///{own}", "tip-bench-1") as found:  # named, so the user knows
        assert found.store.address == f"sqlite:///{own}"


def test_an_experiment_kept_here_is_not_continued_on_a_server_that_turned_up(server: StandIn, own: Path) -> None:
    remember_experiment(Settings(), "tip-bench-1", f"sqlite:///{own}", "tip")
    with pytest.raises(InvalidInput, match="is stored at sqlite"):
        open_store(None, Settings(), "tip-bench-1")


def test_the_last_place_that_was_remembered_counts(own: Path) -> None:
    for place in ("http://bench:5000", f"sqlite:///{own}"):
        remember_experiment(Settings(), "tip/bench: ü", place, "tip")
    with opened(experiment="tip/bench: ü") as found:
        assert found.store.address == f"sqlite:///{own}"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kept_at'])
def test_a_note_that_can_not_be_read_is_no_traceback(home: Path, own: Path, content: str) -> None:
    remember_experiment(Settings(), "tip-bench-1", "http://bench:5000", "tip")
    [note] = (home / "experiments").glob("*.json")
    assert json.loads(note.read_text()) == {
        "experiment": "tip-bench-1",
        "kept_at": "http://bench:5000",
        "suite": "tip",
    }
    note.write_text(content)
    with pytest.raises(InvalidInput, match="--mlflow-url"):
        open_store(None, Settings(), "tip-bench-1")


@pytest.mark.parametrize(
    "url", ["mlruns", "file:///mlruns", "http://", "sqlite:///", "databricks", "postgresql://me:hunter2@db/mlflow"]
)
def test_addresses_that_can_not_be_used(url: str) -> None:
    with pytest.raises(InvalidInput, match="use http://…, https://… or sqlite:///FILE") as caught:
        open_store(url, Settings())
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:hunter2@127.0.0.1:9", "http://me:hunter2#@127.0.0.1:9", "me:hunter2@box"])
def test_credentials_are_neither_shown_nor_kept(url: str, home: Path) -> None:
    def use() -> None:
        with opened(url) as found:
            remember_experiment(Settings(), "tip-bench-1", found.store.address, "tip")
            assert "hunter2" not in found.store.address + found.notice
            found.store.experiments("")

    with pytest.raises(TipbenchError) as caught:
        use()
    assert "hunter2" not in str(caught.value)
    assert all("hunter2" not in note.read_text() for note in home.rglob("*.json"))
