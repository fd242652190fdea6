"""MLflow in process: files that are none, two that start at once, and what `mlflow` itself reads from it."""

import re
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

import pytest

from tests.bench.tracking.store_contract import a_draft
from tipbench.bench.tracking import embedded, mlflow_schema
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import MissingExtra, NothingStored, TrackingError


def test_eight_that_open_a_new_database_at_once(tmp_path: Path) -> None:
    made: list[str] = []

    def start() -> None:
        api = EmbeddedMlflow(f"{SCHEME}{tmp_path / 'new.db'}")
        made.append(RunStore(api).ensure_experiment("race", {}).id)
        api.close()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1


@pytest.mark.parametrize("kind", ["folder", "text"])
def test_a_file_that_is_no_database_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.db"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text("not a database " * 100)
    started = time.monotonic()
    with pytest.raises(TrackingError, match=r"m\.db can't be used as an MLflow database"):
        EmbeddedMlflow(f"{SCHEME}{path}")
    assert time.monotonic() - started < 20  # MLflow by itself tries for minutes


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="does not exist; create it first"):
        EmbeddedMlflow(f"{SCHEME}{tmp_path / 'none' / 'm.db'}")
    with pytest.raises(TrackingError, match="~nobody"):
        EmbeddedMlflow(f"{SCHEME}~nobody-of-that-name/m.db")


def test_reading_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(NothingStored, match="no results yet"):
        EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_path_is_made_absolute(
    empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.db").write_bytes(empty_database.read_bytes())
    api = EmbeddedMlflow(f"{SCHEME}m.db")
    api.close()
    assert api.address == f"{SCHEME}{tmp_path / 'm.db'}"


@pytest.mark.parametrize("folder", ["with space", "ünï 😀", "100%", "a#b", "it's"])
def test_folders_with_odd_names(tmp_path: Path, empty_database: Path, folder: str) -> None:
    path = tmp_path / folder / "m.db"
    path.parent.mkdir()
    path.write_bytes(empty_database.read_bytes())
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{path}"))
    experiment = store.ensure_experiment("odd", {})
    store.write_run(experiment, a_draft(texts={"raw.txt": "text"}))
    [run] = store.runs(experiment, {})
    assert store.text(run, "raw.txt") == "text"
    store.close()
    assert [file.name for file in path.parent.rglob("raw.txt")] == ["raw.txt"]


@pytest.mark.parametrize("folder", ["a%20b", "what?"])
def test_a_path_that_a_database_url_can_not_hold(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    with pytest.raises(TrackingError, match="use another path"):
        EmbeddedMlflow(f"{SCHEME}{tmp_path / folder / 'm.db'}")
    assert list((tmp_path / folder).iterdir()) == []


def test_what_was_written_is_there_after_opening_it_again(database: Path) -> None:
    for started in (1_000, 2_000):
        store = RunStore(EmbeddedMlflow(f"{SCHEME}{database}"))
        store.write_run(store.ensure_experiment("again", {}), a_draft(started))
        store.close()
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{database}", create=False))
    assert len(store.runs(store.experiment("again"), {})) == 2
    store.close()


def test_artifacts_elsewhere_are_not_ours(api: EmbeddedMlflow) -> None:
    assert api.can_store_files("/srv/a")
    assert api.can_store_files("file:///srv/a%20b")
    assert not api.can_store_files("s3://bucket/a")
    with pytest.raises(TrackingError, match="s3://bucket/a can't be reached"):
        api.put_files("s3://bucket/a", {"x": b""})


def test_a_run_that_is_not_there(api: EmbeddedMlflow) -> None:
    with pytest.raises(TrackingError, match=r"the MLflow database .*nobody"):
        api.end_run("nobody", "FINISHED", 1)


def test_without_mlflow_there_is_no_new_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_installed)
    with pytest.raises(MissingExtra, match=r"pip install 'tipbench\[mlflow\]'"):
        EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}")
    assert not (tmp_path / "m.db").exists()


def test_without_mlflow_a_database_of_an_unknown_schema_can_not_be_used(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "TESTED_SCHEMAS", frozenset())
    monkeypatch.setitem(sys.modules, "mlflow.entities", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tipbench\[mlflow\]'"):
        EmbeddedMlflow(f"{SCHEME}{database}")


def test_a_new_database_that_can_not_be_made_says_why(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_schema, "is_installed", lambda: False)
    (home / "cache").unlink()
    (home / "cache").write_text("a file where a folder should be")
    api = EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}")
    with pytest.raises(TrackingError, match=r"MLflow could not create a database: .*cache"):
        RunStore(api).ensure_experiment("x", {})
    api.close()


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "m.db").touch()
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}"))
    store.write_run(store.ensure_experiment("x", {}), a_draft())
    store.close()
    again = RunStore(EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}"))
    assert len(again.runs(again.experiment("x"), {})) == 1
    again.close()


def test_mlflow_is_imported_by_nobody_who_does_not_need_it() -> None:
    code = "import sys, tipbench.bench.tracking.address, tipbench.bench.tracking.batches; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"mlflow", "sqlalchemy", "alembic"} & set(loaded)


def test_run_ids_look_like_mlflows_and_follow_the_order_of_time(tmp_path: Path) -> None:
    api = EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}")
    experiment = RunStore(api).ensure_experiment("ids", {})
    ids = []
    for _ in range(5):
        place = api.reserve_run(experiment)
        assert place is not None
        ids.append(place[0])
        time.sleep(0.002)
    api.close()
    assert ids == sorted(set(ids))
    assert all(re.fullmatch("[0-9a-f]{32}", run_id) for run_id in ids)
