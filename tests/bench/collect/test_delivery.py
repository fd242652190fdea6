"""Whatever stops the delivery comes out where somebody sees it, and no cell is left behind."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.bench.collect.test_journal import HEAD, entry
from tipbench.bench.collect import delivery
from tipbench.bench.collect.delivery import CellWriter, Delivery, deliver_orphaned, open_cell_writer
from tipbench.bench.collect.journal import Entry, Journal, copy_journal, orphaned_journals
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, FinishedRun
from tipbench.bench.tracking.runs import CELL, KIND
from tipbench.bench.tracking.store import RunDraft, RunStore
from tipbench.core.errors import TrackingUnreachable


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    api = EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
    yield RunStore(api)
    api.close()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.create(tmp_path / "journal", HEAD, "me")


def test_an_error_nobody_thought_of_ends_the_collection_and_loses_nothing(
    store: RunStore, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any) -> None:
        raise RuntimeError("nobody thought of this")

    experiment = store.ensure_experiment("tip-bench-x", {})
    monkeypatch.setattr(RunStore, "write_runs", breaks)
    with (
        pytest.raises(RuntimeError, match="nobody thought"),
        open_cell_writer(journal, store, lambda: experiment) as writer,
    ):
        writer.write([entry("a")])
    (kept,) = orphaned_journals(tmp_path / "journal")
    assert [found.key for found, _ in kept.pending(9)] == ["a"]
    kept.close()


def test_a_cell_that_comes_while_the_delivery_looks_for_the_end_is_not_left_behind(
    store: RunStore, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery = Delivery(journal, store, lambda: store.ensure_experiment("tip-bench-x", {}))
    read, snapshots = journal.pending, iter([True])

    def waiting(most: int) -> list[tuple[Entry, int]]:
        if next(snapshots, False):  # it finds nothing, and then both the last cell and the end come
            journal.append(entry("last"))
            delivery._no_more.set()
            return []
        return read(most)

    monkeypatch.setattr(journal, "pending", waiting)
    delivery.start()
    assert delivery.finish().cells == 1
    assert journal.is_delivered
    journal.close()


def test_keeping_up_waits_until_each_cell_is_delivered(store: RunStore, journal: Journal) -> None:
    experiment = store.ensure_experiment("tip-bench-x", {})
    with open_cell_writer(journal, store, lambda: experiment, keep_up=True) as writer:
        for number, name in enumerate("abc", 1):
            writer.write([entry(name)])
            assert len(store.runs(experiment, {})) == number
    assert writer.undelivered == 0


def test_keeping_up_waits_while_mlflow_is_away_and_then_gives_up(
    store: RunStore, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise TrackingUnreachable("nobody there")

    experiment = store.ensure_experiment("tip-bench-x", {})
    monkeypatch.setattr(RunStore, "write_runs", away)
    monkeypatch.setattr("tipbench.bench.collect.delivery.KEEP_UP_S", 0.3)
    monkeypatch.setattr("tipbench.bench.collect.delivery.HURRY_S", 0.1)
    with (
        pytest.raises(TrackingUnreachable, match=r"has not taken a cell for 0\.3 s"),
        open_cell_writer(journal, store, lambda: experiment, keep_up=True) as writer,
    ):
        writer.write([entry("a")])
    (kept,) = orphaned_journals(tmp_path / "journal")
    assert [found.key for found, _ in kept.pending(9)] == ["a"]
    kept.close()


def test_keeping_up_goes_on_when_mlflow_is_back(
    store: RunStore, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, outages = RunStore.write_runs, iter([True])

    def sometimes(self: RunStore, *given: Any) -> None:
        if next(outages, False):
            raise TrackingUnreachable("nobody there")
        write(self, *given)

    experiment = store.ensure_experiment("tip-bench-x", {})
    monkeypatch.setattr(RunStore, "write_runs", sometimes)
    with open_cell_writer(journal, store, lambda: experiment, keep_up=True) as writer:
        writer.write([entry("a")])
        assert len(store.runs(experiment, {})) == 1
    assert writer.delivered.outages == 1


def test_who_is_interrupted_does_not_wait_for_an_mlflow_that_hangs(
    store: RunStore, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def hangs(*_: Any) -> None:
        asked.set()
        answered.wait(30)

    experiment = store.ensure_experiment("tip-bench-x", {})
    monkeypatch.setattr(RunStore, "write_runs", hangs)
    monkeypatch.setattr("tipbench.bench.collect.delivery.STUCK_S", 0.3)
    started = time.monotonic()
    writer: list[CellWriter] = []

    def collect() -> None:
        with open_cell_writer(journal, store, lambda: experiment) as opened:
            writer.append(opened)
            opened.write([entry("a")])
            asked.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect()
    assert time.monotonic() - started < 5
    assert writer[0].undelivered == 1, "it stands in the journal, for the next one"
    answered.set()


def test_cells_that_come_quickly_share_a_transaction_and_the_end_waits_for_nothing(
    store: RunStore, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = RunStore.write_runs

    def counted(self: RunStore, experiment: Experiment, drafts: Sequence[RunDraft], *stored: Any) -> None:
        sizes.append(len(drafts))
        write(self, experiment, drafts, *stored)

    monkeypatch.setattr(RunStore, "write_runs", counted)
    delivery = Delivery(journal, store, lambda: store.ensure_experiment("tip-bench-x", {}), gather_s=60.0)
    delivery.start()
    for number in range(20):
        journal.append(entry(f"c{number}"))
        delivery.wake()
    started = time.monotonic()
    assert delivery.finish().cells == 20
    assert time.monotonic() - started < 30
    assert sum(sizes) == 20
    assert len(sizes) <= 2  # the first one may have found it waiting
    journal.close()


def test_progress_is_told_after_each_transaction(
    store: RunStore, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a disk that needs seconds for all of them would be taken for one that is stuck."""
    monkeypatch.setattr("tipbench.bench.tracking.store._RUNS_AT_ONCE", 4)
    delivery = Delivery(journal, store, lambda: store.ensure_experiment("tip-bench-x", {}), gather_s=60.0)
    told: list[int] = []
    insert = EmbeddedMlflow.insert_runs

    def insert_slowly(self: EmbeddedMlflow, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        if told:
            deadline = time.monotonic() + 10
            while delivery.result.cells == 0 and time.monotonic() < deadline:
                time.sleep(0.001)
        told.append(delivery.result.cells)
        insert(self, experiment, runs)

    monkeypatch.setattr(EmbeddedMlflow, "insert_runs", insert_slowly)
    for number in range(12):
        journal.append(entry(f"c{number}"))
    delivery.start()
    assert delivery.finish().cells == 12
    assert told[0] == 0
    assert told[1] >= 4
    journal.close()


def test_of_a_copied_journal_each_cell_is_looked_up_however_far_it_is_delivered(
    store: RunStore, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was copied after the journal, and so may have any of its cells, in any number of transactions."""
    monkeypatch.setattr(delivery, "_BATCH_SIZE", 2)
    drafts = {key: RunDraft("n", 1, 2, tags={KIND: CELL, "tipbench.cell_key": key}) for key in "abcdef"}
    for key, draft in drafts.items():
        journal.append(Entry(key, draft))
    experiment = store.ensure_experiment(HEAD.experiment, {})
    store.write_runs(experiment, [drafts[key] for key in "abdf"])
    path = tmp_path / "copies" / journal.path.name
    path.parent.mkdir()
    copy_journal(journal.path, path)
    (first,) = orphaned_journals(path.parent)
    first.mark_delivered(first.pending(3)[-1][1])
    first.close()  # killed on the way, and what is left is still a copy
    delivered = deliver_orphaned(orphaned_journals(path.parent), store)
    keys = [run.tags["tipbench.cell_key"] for run in store.runs(experiment, {})]
    assert (delivered.cells, sorted(keys)) == (1, ["a", "b", "d", "e", "f"])
    assert list(path.parent.iterdir()) == []
