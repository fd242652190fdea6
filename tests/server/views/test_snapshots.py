"""What is kept of an experiment, and when it counts no more."""

import shutil
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.filling import filled
from tests.server.views.conftest import EXPERIMENT
from tipbench.bench.compare.html.page import Report
from tipbench.bench.compare.snapshot import Snapshot, load_snapshot
from tipbench.bench.judge.calibration import Calibration, save_calibration
from tipbench.bench.judge.drift import Drift
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.store import RunStore
from tipbench.core.untrusted import json_text
from tipbench.server.views import snapshots as looks_module
from tipbench.server.views.boards import Boards, RunFilter
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider


class SlowReader:
    """Reads an experiment as it is, and is held up before anybody gets to see it."""

    def __init__(self, snapshots: SnapshotMemoryCache, monkeypatch: pytest.MonkeyPatch) -> None:
        self._has_read, self._go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(looks_module, "load_snapshot", self._take_look)
        self._thread = threading.Thread(target=snapshots.find, args=(EXPERIMENT,))
        self._thread.start()
        assert self._has_read.wait(30)

    def end(self) -> None:
        self._go_on.set()
        self._thread.join()

    def _take_look(self, *given: Any, **named: Any) -> Snapshot:
        snapshot = load_snapshot(*given, **named)
        if threading.current_thread() is self._thread:
            self._has_read.set()
            self._go_on.wait(30)
        return snapshot


def test_who_began_to_read_before_scores_were_applied_hides_them_from_nobody(
    desk: JudgingDesk, snapshots: SnapshotMemoryCache, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = desk.next_batch("anna")
    assert opened
    snapshots.invalidate(snapshots.find(EXPERIMENT).snapshot.experiment.id)
    reader = SlowReader(snapshots, monkeypatch)
    scored = json_text(filled(desk.file(opened.batch, "anna")))
    desk.submit_file(opened.batch, "anna", scored.encode())
    reader.end()
    assert boards.experiments()[0].judged == 16
    assert desk.next_batch("anna") is None


def test_a_database_that_was_put_in_the_place_of_another_is_another_one(boards: Boards, address: str) -> None:
    assert boards.experiments()[0].cells == 16
    path = Path(address.removeprefix("sqlite:///"))
    other = path.with_name("other.db")
    shutil.copy(path, other)
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = (SELECT run_uuid FROM runs)")
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    other.replace(path)
    assert boards.experiments()[0].cells == 15


def test_an_experiment_that_was_renamed_without_a_mark_is_read_again(
    snapshots: SnapshotMemoryCache, stores: StoreProvider
) -> None:
    found = snapshots.find(EXPERIMENT)
    renamed = replace(found.snapshot.experiment, name="tip-bench-second")
    version = stores.store().version()
    assert snapshots.get(stores.store(), found.snapshot.experiment, version) is found
    found.version = None  # as from a server, which does not tell
    assert snapshots.get(stores.store(), renamed, version).snapshot.experiment.name == "tip-bench-second"


@pytest.fixture
def statements(stores: StoreProvider) -> list[str]:
    """What the store's database is asked."""
    found: list[str] = []
    stores.store()._api._tables()._connection.set_trace_callback(found.append)  # type: ignore[attr-defined]
    return found


def test_what_is_in_memory_takes_one_question_to_the_database(boards: Boards, statements: list[str]) -> None:
    def ask() -> None:
        boards.leaderboard_json(EXPERIMENT)
        boards.runs(EXPERIMENT, RunFilter(), 0, 50)
        boards.overview(EXPERIMENT, lambda report: report.board.experiment)
        boards.experiments()

    ask()
    statements.clear()
    ask()
    assert statements == ["PRAGMA data_version"] * 4


def test_a_page_is_rendered_once_for_all_and_again_when_something_has_changed(
    boards: Boards, desk: JudgingDesk, stores: StoreProvider
) -> None:
    rendered: list[int] = []

    def render(report: Report) -> str:
        rendered.append(report.board.judged)
        return f"{report.board.judged} judged"

    opened = desk.next_batch("anna")
    assert opened
    assert {boards.overview(EXPERIMENT, render)[1] for _ in range(3)} == {"0 judged"}
    desk.submit_file(opened.batch, "anna", json_text(filled(desk.file(opened.batch, "anna"))).encode())
    assert {boards.overview(EXPERIMENT, render)[1] for _ in range(3)} == {"16 judged"}
    assert rendered == [0, 16]
    report, _ = boards.overview(EXPERIMENT, render)
    found = Calibration("lexical", report.board.rubric, report.board.rubric_digest, 1, Drift(40, 0, {}), {})
    save_calibration(stores.settings.home, found)
    boards.overview(EXPERIMENT, render)
    assert rendered == [0, 16, 16]


def test_the_list_of_experiments_shows_a_new_one_at_once(boards: Boards, stores: StoreProvider) -> None:
    before = len(boards.experiments())
    other = RunStore(EmbeddedMlflow(stores.address))  # as another process
    other.ensure_experiment("tip-bench-new", {"tipbench.suite": "tip"})
    other.close()
    assert [line.name for line in boards.experiments()][: len(boards.experiments()) - before] == ["tip-bench-new"]
