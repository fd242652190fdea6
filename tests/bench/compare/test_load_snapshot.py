"""A look is the truth: whatever order runs come in, whoever writes meanwhile, whatever was kept before."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare.conftest import NAME, a_cell_draft, apply_batch, patient, store_batch
from tests.bench.tracking.records_made import RUBRIC, an_answer
from tests.bench.tracking.shared_mlflow import SharedMlflow
from tipbench.bench.compare.snapshot import Snapshot, load_snapshot, rubric_of
from tipbench.bench.tracking.batches import accept_drift, applied_batches, batch_runs
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import KIND, SUPERSEDED, stored_cell, stored_runs, supersede_duplicates
from tipbench.bench.tracking.store import RunChange, RunStore
from tipbench.bench.tracking.write_markers import ABANDONED_S, WriteMarkers, writers
from tipbench.core import sqlite
from tipbench.core.errors import StoredDataDamaged, TrackingUnreachable

TIME = 1_000_000.0


def snapshot(store: RunStore, snapshots: Path, refresh: bool = False, at: float = TIME) -> Snapshot:
    return load_snapshot(store, store.experiment(NAME), snapshots, refresh, lambda: at)


def read_anew(store: RunStore, snapshots: Path) -> Snapshot:
    return snapshot(store, snapshots / "of somebody who was never here")


@pytest.mark.usefixtures("experiment")
def test_what_a_look_holds(store: RunStore, tmp_path: Path) -> None:
    seen = snapshot(store, tmp_path)
    assert [(cell.key, cell.failure is None) for cell in seen.cells] == [
        ("a", True), ("b", True), ("c", False), ("d", True),
    ]  # fmt: skip
    assert seen.cells == tuple(map(stored_cell, stored_runs(store, seen.experiment)))
    assert [(batch.batch, batch.judge, batch.counted) for batch in seen.batches] == [("one", "ana", True)]
    assert seen.kappas(RUBRIC.digest) == {"ana": {"tone": 0.5, "relevance": None}}
    assert seen.kappas("another") == {}
    assert seen.rubric is not None
    assert seen.rubric.text == RUBRIC.text


@pytest.mark.usefixtures("experiment")
@patient
@given(st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_nothing(
    api: SharedMlflow, store: RunStore, tmp_path: Path, order: random.Random
) -> None:
    api.shuffle = None
    expected = read_anew(store, tmp_path)
    api.shuffle = order
    assert snapshot(store, tmp_path, refresh=True) == expected


@pytest.mark.usefixtures("experiment")
def test_what_has_not_changed_is_not_read_again(api: SharedMlflow, store: RunStore, tmp_path: Path) -> None:
    first = snapshot(store, tmp_path)
    api.searches = 0
    assert snapshot(store, tmp_path) == first
    assert api.searches == 0
    assert snapshot(store, tmp_path, refresh=True) == first
    assert api.searches > 0


class CountingMlflow(EmbeddedMlflow):
    """A database file that counts how often runs are searched in it."""

    searches = 0

    def search_runs(self, *given: Any, **named: Any) -> Iterator[StoredRun]:
        self.searches += 1
        return super().search_runs(*given, **named)


@pytest.fixture
def file(api: SharedMlflow, experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingMlflow]:
    """The same database, as a file that was last written long ago."""
    assert experiment
    monkeypatch.setattr(sqlite, "_COARSEST_TICK_NS", 0)
    file = CountingMlflow(api.address)
    yield file
    file.close()


def test_a_database_file_that_has_not_changed_is_not_read_again(file: CountingMlflow, tmp_path: Path) -> None:
    store = RunStore(file)
    first = snapshot(store, tmp_path)
    file.searches = 0
    assert snapshot(store, tmp_path) == first
    assert file.searches == 0
    assert snapshot(store, tmp_path, refresh=True) == first
    assert file.searches > 0


def test_what_others_write_to_a_database_file_without_a_marker_is_seen_at_once(
    file: CountingMlflow, tmp_path: Path
) -> None:
    store = RunStore(file)
    *others, gone = snapshot(store, tmp_path).cells
    with closing(sqlite3.connect(file.path)) as pages, pages:  # as MLflow's pages delete a run
        pages.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = ?", (gone.run_id,))
    assert snapshot(store, tmp_path).cells == tuple(others)


def test_a_database_file_that_was_written_just_now_is_not_cached(
    file: CountingMlflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_COARSEST_TICK_NS", 3_600 * 10**9)
    snapshot(RunStore(file), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_who_writes_while_a_database_file_is_read_keeps_it_out_of_the_cache(
    file: CountingMlflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, stamps = RunStore(file), iter(["before", "after"])
    monkeypatch.setattr(file, "stamp", lambda: next(stamps))
    snapshot(store, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def first(store: RunStore, experiment: Experiment) -> StoredRun:
    return stored_runs(store, experiment)[0]


def _accept(store: RunStore, experiment: Experiment) -> None:
    [applied] = applied_batches(store, batch_runs(store, experiment), RUBRIC.digest)
    accept_drift(store, applied, "ana: it is fine")


WRITES: dict[str, Callable[[RunStore, Experiment], object]] = {
    "a cell": lambda store, experiment: store.write_run(experiment, a_cell_draft(an_answer(key="e"))),
    "cells": lambda store, experiment: store.write_runs(experiment, [a_cell_draft(an_answer(key="e"))]),
    "a batch": lambda store, experiment: store_batch(store, experiment, "three"),
    "scores": lambda store, experiment: apply_batch(store, experiment, "two"),
    "other scores": lambda store, experiment: apply_batch(store, experiment, "one", kappa=0.9),
    "a batch in quarantine": lambda store, experiment: apply_batch(store, experiment, "one", quarantine="drift"),
    "drift that was accepted": _accept,
    "runs settled": lambda store, experiment: store.extend_runs(
        experiment, [RunChange(first(store, experiment), {"judge_pending": "false"}, {"composite": 9.0})]
    ),
    "a run set aside": lambda store, experiment: store.extend_run(first(store, experiment), {SUPERSEDED: "true"}),
    "a run removed": lambda store, experiment: store.remove_run(first(store, experiment)),
    "later answers": supersede_duplicates,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_kind_of_write_is_noticed(
    api: SharedMlflow,
    store: RunStore,
    experiment: Experiment,
    tmp_path: Path,
    write: Callable[[RunStore, Experiment], object],
) -> None:
    snapshot(store, tmp_path)
    write(store, experiment)
    api.searches = 0
    assert snapshot(store, tmp_path) == read_anew(store, tmp_path)
    assert api.searches > 0
    api.searches = 0
    snapshot(store, tmp_path)  # and kept again
    assert api.searches == 0


def test_what_is_written_while_somebody_reads_is_not_missed(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path
) -> None:
    other = RunStore(api)

    def write() -> None:
        api.during_search = lambda: None
        other.write_run(experiment, a_cell_draft(an_answer(key="e")))

    api.during_search = write  # the batches are read by then, and the cells are not
    snapshot(store, tmp_path)
    api.searches = 0
    assert len(snapshot(store, tmp_path).cells) == 5
    assert api.searches > 0


def test_nothing_is_trusted_or_kept_while_somebody_writes(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path
) -> None:
    snapshot(store, tmp_path)
    other = RunStore(api)
    with other.session():
        for number in range(3):
            other.write_run(experiment, a_cell_draft(an_answer(key=f"e{number}")))
            assert len(snapshot(store, tmp_path).cells) == 5 + number
    assert snapshot(store, tmp_path) == read_anew(store, tmp_path)


def test_a_killed_writer_is_forgotten_after_half_an_hour(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path
) -> None:
    WriteMarkers(api).writing(experiment.id).__enter__()  # and then no more of it
    for at in (TIME, TIME + ABANDONED_S - 1):
        snapshot(store, tmp_path, at=at)
        assert len(writers(store.experiment(NAME))) == 1
    snapshot(store, tmp_path, at=TIME + ABANDONED_S)
    assert writers(store.experiment(NAME)) == {}
    api.searches = 0
    snapshot(store, tmp_path)
    assert api.searches == 0


def test_a_writer_that_goes_on_is_not_forgotten_beside_one_that_does_not(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path
) -> None:
    for key in ("gone", "alive"):
        api.tag_experiment(experiment.id, f"tipbench.writing:{key}", "1")
    snapshot(store, tmp_path)
    api.tag_experiment(experiment.id, "tipbench.writing:alive", "2")
    snapshot(store, tmp_path, at=TIME + ABANDONED_S)
    assert writers(store.experiment(NAME)) == {"tipbench.writing:alive": "2"}
    snapshot(store, tmp_path, at=TIME)  # a clock that was set back makes nobody older
    snapshot(store, tmp_path, at=TIME + ABANDONED_S - 1)
    assert len(writers(store.experiment(NAME))) == 1


def test_a_reader_who_may_not_take_marks_away_reads_everything(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path
) -> None:
    api.tag_experiment(experiment.id, "tipbench.writing:gone", "1")
    api.refuses_marks = True
    for at in (TIME, TIME + ABANDONED_S, TIME + 2 * ABANDONED_S):
        api.searches = 0
        assert len(snapshot(store, tmp_path, at=at).cells) == 4
        assert api.searches > 0


def test_runs_of_a_version_without_marks_are_read_each_time(api: SharedMlflow, store: RunStore, tmp_path: Path) -> None:
    store.ensure_experiment(NAME, {})
    for _ in range(2):
        api.searches = 0
        assert snapshot(store, tmp_path).cells == ()
        assert api.searches > 0


def test_a_rubric_that_is_gone_is_told_to_whoever_needs_it(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path
) -> None:
    [run] = [run for run in batch_runs(store, experiment) if run.tags["tipbench.batch"] == "one"]
    (Path(run.artifact_uri) / "rubric.md").unlink()
    for _ in range(2):
        seen = snapshot(store, tmp_path)
        assert len(seen.cells) == 4
        with pytest.raises(StoredDataDamaged, match=r"rubric\.md"):
            rubric_of(seen)


def test_a_server_that_goes_away_is_an_error(
    api: SharedMlflow, store: RunStore, experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> bytes:
        raise TrackingUnreachable("gone")

    monkeypatch.setattr(api, "get_file", away)
    with pytest.raises(TrackingUnreachable):
        snapshot(store, tmp_path)


@pytest.mark.usefixtures("experiment")
def test_one_that_goes_away_after_everything_was_read_is_none(
    api: SharedMlflow, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(name: str) -> Experiment | None:
        raise TrackingUnreachable(name)

    found = store.experiment(NAME)
    monkeypatch.setattr(api, "find_experiment", away)
    assert len(load_snapshot(store, found, tmp_path / "looks").cells) == 4
    assert not (tmp_path / "looks").exists()  # it is not kept


def test_before_a_batch_is_applied_the_newest_cell_carries_the_rubric(store: RunStore, tmp_path: Path) -> None:
    experiment = store.ensure_experiment(NAME, {})
    store.write_run(experiment, a_cell_draft(an_answer()))
    seen = snapshot(store, tmp_path)
    assert seen.rubric is not None
    assert (seen.rubric.run_id, seen.rubric.text) == (seen.cells[0].run_id, RUBRIC.text)
    assert store.runs(experiment, {KIND: "batch"}) == []
