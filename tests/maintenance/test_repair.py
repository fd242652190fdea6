"""What killed processes left is found, and removed if it is asked for; what is in use stays."""

import os
import socket
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench.tracking.test_artifacts import HOUR, folder, run_id
from tipbench.bench.collect.journal import Entry, Journal, JournalHead
from tipbench.bench.engines.residency import exclusive_use
from tipbench.bench.tracking.address import open_store, own_database_url
from tipbench.bench.tracking.store import RunDraft, RunStore
from tipbench.bench.tracking.write_markers import WRITING
from tipbench.cli.main import run
from tipbench.core.backups import backup_lock_path
from tipbench.core.errors import EngineUnreachable
from tipbench.core.files import make_private_folder
from tipbench.core.paths import journal_folder
from tipbench.core.settings import Settings
from tipbench.maintenance import repair
from tipbench.maintenance.backup import backup_lock
from tipbench.maintenance.repair import Leftover, Repair
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, Marker, UserState

DAY = 86_400.0


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Not the system's folder, in which other tests are at work."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.fixture
def store(home: Path) -> "RunStore":
    return open_store(own_database_url(Settings()), Settings(), create=True).store


def found(mend: bool = False, now_s: float | None = None) -> list[Leftover]:
    return list(Repair(Settings(), lambda: now_s or time.time(), mend).in_home())


def old(path: Path, age_s: float = 2 * DAY) -> Path:
    make_private_folder(path.parent)
    if not path.exists():
        path.touch()
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def journal(home: Path, address: str) -> Journal:
    made = Journal.create(journal_folder(home), JournalHead(address, "tip-bench-x", "tip", {}), "me")
    made.append(Entry("k", RunDraft("n", 1, 2, tags={"tipbench.kind": "cell", "tipbench.cell_key": "k"})))
    return made


def test_a_home_without_leftovers_and_no_home_at_all(home: Path) -> None:
    assert found(mend=True) == []
    (home / "cache").unlink()
    home.rmdir()  # looking for them makes nothing either
    assert found(mend=True) == []


def test_cells_of_an_ended_collection_are_delivered_and_those_of_a_living_one_stay(home: Path, store: RunStore) -> None:
    living = journal(home, store.address)
    assert found(mend=True) == []
    os.close(living._file)  # as if its process had ended
    what = "1 journal of ended collections with 1 undelivered cell"
    assert found() == [Leftover(what)]
    assert found(mend=True) == [Leftover(what, "1 cell delivered", True)]
    assert found(mend=True) == []
    assert len(store.runs(store.experiment("tip-bench-x"), {})) == 1
    store.close()


def test_cells_that_can_not_be_delivered_stay(home: Path) -> None:
    os.close(journal(home, "sqlite:////nowhere/mlflow.db")._file)
    (left,) = found(mend=True)
    assert (left.mended, left.outcome[:56]) == (False, "0 cells delivered; tip-bench-x: the folder /nowhere of s")
    assert len(list(journal_folder(home).iterdir())) == 1


def test_users_states_are_recovered(home: Path) -> None:
    states = FileStore(home / "recommender" / "state")
    with states.transaction(Key("u1", "egreedy")) as transaction:
        transaction.put_state(UserState("v1", {}))
    assert found(mend=True) == [], "its process is alive"
    states._release()
    what = "1 journal of users' states, of ended services"
    assert found() == [Leftover(what)]
    assert found(mend=True) == [Leftover(what, "recovered", True)]
    assert found(mend=True) == []


def test_users_states_that_were_moved_are_left(home: Path) -> None:
    segment = home / "recommender" / "state" / ".journal" / "1.wal"
    make_private_folder(segment.parent)
    segment.touch()
    FileStore(home / "recommender" / "state", exclusive=True).set_marker(Marker("MOVED", "postgresql", "db", 0))
    segment.touch()  # as somebody put it there
    (left,) = found(mend=True)
    assert left.mended is False
    assert "were moved to db" in left.outcome


def test_folders_of_no_run_are_removed(home: Path, store: RunStore) -> None:
    left = folder(home / "mlflow.db", run_id(2 * HOUR))
    what = f"1 folder of files that belong to no run: {left}"
    assert found() == [Leftover(what)]
    reserved = store._api.reserve_run(store.ensure_experiment("tip-bench-x", {}))
    assert reserved
    (busy,) = found(mend=True)
    assert (busy.mended, left.exists()) == (False, True)
    store.close()
    (removed,) = found(mend=True)
    assert (removed.outcome, left.exists()) == ("removed", False)


def test_a_backup_that_was_cut_off_is_removed_and_one_that_is_made_is_not(home: Path, tmp_path: Path) -> None:
    left = tmp_path / ".b.0123abcd.part"
    left.mkdir()
    with backup_lock(home):
        backup_lock_path(home).write_text(str(left))
        assert found(mend=True) == []
    assert found() == [Leftover(f"a backup that was cut off: {left}")]
    assert found(mend=True) == [Leftover(f"a backup that was cut off: {left}", "removed", True)]
    assert not left.exists()


def test_restoring_that_was_cut_off(home: Path) -> None:
    stage = home.with_name(f".{home.name}.restoring")
    stage.mkdir()
    assert found(mend=True) == [Leftover(f"restoring that was cut off: {stage}", "removed", True)]
    assert not stage.exists()


def test_temporary_files_of_yesterday_are_removed(home: Path) -> None:
    left = [
        old(home / name) for name in ("server/.secret.ab.part", "journal/p-n.part", "recommender/state/.u.json.part")
    ]
    pulled = home / "weights" / ".pull-x"
    make_private_folder(pulled)
    left.append(old(pulled))
    stay = [old(home / "server" / "notes.part"), old(home / "tmp" / ".x.part"), old(home / ".y.part", DAY / 2)]
    (report,) = found()
    assert report.what.startswith("4 temporary files of processes that were killed: ")
    (done,) = found(mend=True)
    assert done.mended
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in stay)


def test_folders_of_killed_mlflow_processes_are_removed(temporary: Path) -> None:
    def made(name: str, *files: str) -> Path:
        folder = temporary / f"tipbench-{name}"
        folder.mkdir()
        for file in files:
            (folder / file).touch()
        return old(folder)

    with ExitStack() as stack:
        for name in ("dead", "alive"):
            folder = made(name, "mlflow.log")
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(folder / "mlflow.sock"))
            server.listen()
            old(folder)
            if name == "dead":
                server.close()
        made("early")
        made("others", "thesis.tex")
        (left,) = found(mend=True)
    assert left.what.startswith("2 folders of MLflow processes that were killed: ")
    assert sorted(path.name for path in temporary.iterdir()) == ["tipbench-alive", "tipbench-others"]


def test_marks_of_writers_are_removed_after_half_an_hour(home: Path, store: RunStore) -> None:
    experiment = store.ensure_experiment("tip-bench-x", {})
    store.tag_experiment(experiment, f"{WRITING}a", "1")
    what = "1 mark of writers to 'tip-bench-x' that are at work or were killed"

    def marks(mend: bool, after_s: float) -> list[Leftover]:
        return list(Repair(Settings(), lambda: 1_000_000 + after_s, mend).writers(store))

    assert marks(False, 0) == [Leftover(what)]
    assert marks(True, 0) == [Leftover(what, "they may be at work; try again in half an hour", False)]
    assert marks(True, 1_900) == [Leftover(what, "removed", True)]
    assert marks(True, 1_900) == []
    store.close()


def test_what_can_not_be_removed_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = old(home / "server" / ".x.part")

    def refused(_: Path, missing_ok: bool = False) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "unlink", refused)
    (left,) = found(mend=True)
    assert (left.mended, left.outcome) == (False, f"{path} can't be removed: Operation not permitted")


class _Engine:
    """One that loads models on request."""

    exclusive = True
    address = "http://gpu-box:11434"

    def __init__(self) -> None:
        self.loaded = ["a"]
        self.is_away = False

    def resident(self) -> list[str]:
        if self.is_away:
            raise EngineUnreachable("nothing answers at http://gpu-box:11434")
        return self.loaded

    def unload(self, model: str) -> None:
        self.loaded.remove(model)


def test_models_of_an_interrupted_collection_are_unloaded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = _Engine()
    engines: Any = SimpleNamespace(named=lambda _: engine)
    monkeypatch.setattr(repair, "CATALOG", {"ollama": None})

    def models(mend: bool = True) -> list[Leftover]:
        return list(Repair(Settings(), time.time, mend).models(engines))

    assert models() == []
    with suppress(KeyboardInterrupt), exclusive_use(engine, ["a"], home, True, print):
        assert models() == [], "the collection is alive"
        raise KeyboardInterrupt
    what = "a may still be loaded on http://gpu-box:11434"
    assert models(mend=False) == [Leftover(what)]
    engine.is_away = True
    assert models() == [Leftover(what, "nothing answers at http://gpu-box:11434", False)]
    engine.is_away = False
    assert models() == [Leftover(what, "unloaded", True)]
    assert engine.loaded == []
    assert models() == []


def test_doctor_says_what_it_found_and_mends_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = old(home / "server" / ".x.part")
    words = ["doctor", "--ollama-url", "http://127.0.0.1:9", "--mlflow-url", "http://127.0.0.1:9"]
    run(words)
    said = capsys.readouterr().out
    assert f"· leftover  1 temporary file of processes that were killed: {path}\n" in said
    assert "'tipbench doctor --repair' takes care of that" in said
    run([*words, "--repair"])
    assert f"✓ leftover  1 temporary file of processes that were killed: {path} – removed\n" in capsys.readouterr().out
    run(words)
    assert "leftover" not in capsys.readouterr().out
