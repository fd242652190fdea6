"""Whatever writes leaves a mark; whoever does not come to its end leaves one that nobody mistakes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bench.tracking.shared_mlflow import SharedMlflow
from tests.bench.tracking.store_contract import TEXTS, a_draft
from tipbench.bench.tracking import write_markers as marks
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.store import RunChange, RunStore
from tipbench.bench.tracking.write_markers import LEASE_S, WRITTEN, WriteMarkers, marker_state, writers
from tipbench.core.errors import TrackingError, TrackingRefused, TrackingUnreachable


@pytest.fixture
def api(database: Path) -> Iterator[SharedMlflow]:
    opened = SharedMlflow(f"{SCHEME}{database}")
    yield opened
    opened.close()


def now(store: RunStore) -> Experiment:
    return store.experiment("tip-bench-test")


def first(store: RunStore) -> StoredRun:
    return store.runs(now(store), {})[0]


def restored(store: RunStore) -> None:
    store.delete_experiment(now(store))
    store.restore_experiment("tip-bench-test")


WRITES: dict[str, Callable[[RunStore], object]] = {
    "write_run": lambda store: store.write_run(now(store), a_draft(texts=TEXTS)),
    "write_runs": lambda store: store.write_runs(now(store), [a_draft(), a_draft()]),
    "extend_run": lambda store: store.extend_run(first(store), {"a": "b"}, {"c": 1.0}, TEXTS),
    "extend_runs": lambda store: store.extend_runs(now(store), [RunChange(first(store), {"a": "b"}, {})]),
    "tag_run": lambda store: store.tag_run(now(store), first(store).run_id, {"a": "b"}),
    "remove_run": lambda store: store.remove_run(first(store)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_write_changes_the_mark(
    store: RunStore, api: SharedMlflow, experiment: Experiment, write: Callable[[RunStore], object]
) -> None:
    assert marker_state(experiment) is None  # nobody has left a mark yet
    store.write_run(experiment, a_draft())
    before, count = marker_state(now(store)), api.writes
    write(store)
    after = now(store)
    assert api.writes > count  # each of them looked for the mark, too
    assert None not in (before, marker_state(after))
    assert marker_state(after) != before
    assert writers(after) == {}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_database_file_is_marked_as_well(database: Path, write: Callable[[RunStore], object]) -> None:
    """A server may be on the same file, and somebody who looks at it from elsewhere."""
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{database}"))
    store.write_run(store.ensure_experiment("tip-bench-test", {}), a_draft())
    before = marker_state(now(store))
    write(store)
    assert marker_state(now(store)) not in (None, before)
    store.close()


def test_nothing_that_writes_to_runs_is_missing_from_the_table() -> None:
    others = {"session", "forget_writers", "close", "experiment", "ensure_experiment", "find_experiment", "experiments"}
    others |= {
        "transaction",
        "foreign_runs",
        "runs",
        "all_runs",
        "iter_runs",
        "newest_runs",
        "runs_by_id",
        "text",
        "address",
        "under_prefix",
        "is_shared",
        "version",
        "stamp",
    }
    others |= {"delete_experiment", "restore_experiment"}  # these have a test of their own
    others |= {"describe_experiment", "tag_experiment", "rest"}  # what they write, no reader takes for a result
    assert {name for name in vars(RunStore) if not name.startswith("_")} == others | set(WRITES)


def test_an_experiment_that_was_deleted_and_restored_is_trusted_no_more(
    store: RunStore, experiment: Experiment
) -> None:
    store.write_run(experiment, a_draft())
    before = marker_state(now(store))
    restored(store)
    assert marker_state(now(store)) != before


def test_a_session_costs_a_few_requests(store: RunStore, api: SharedMlflow, experiment: Experiment) -> None:
    with store.session():
        assert api.marks_set == 0  # before there is something to write, nothing is said
        for _ in range(20):
            with store.session():
                store.write_run(experiment, a_draft())
        assert len(writers(now(store))) == 1
        assert marker_state(now(store)) is None
    assert api.marks_set == 2
    assert marker_state(now(store))


def test_a_session_without_a_write_leaves_everything_as_it_was(store: RunStore, experiment: Experiment) -> None:
    store.write_run(experiment, a_draft())
    before = now(store)
    with store.session():
        store.runs(before, {})
    assert now(store) == before


def test_one_that_ends_while_another_still_writes(store: RunStore, api: SharedMlflow, experiment: Experiment) -> None:
    other = RunStore(api)
    with store.session():
        store.write_run(experiment, a_draft())
        with other.session():
            other.write_run(experiment, a_draft())
            assert len(writers(now(store))) == 2
        assert len(writers(now(store))) == 1
        assert marker_state(now(store)) is None
        mark = now(store).tags[WRITTEN]
    assert marker_state(now(store)) not in (None, mark)


@pytest.mark.parametrize("error", [TrackingUnreachable("timed out"), KeyboardInterrupt(), MemoryError()])
def test_after_a_request_without_an_answer_the_mark_stays(
    store: RunStore, api: SharedMlflow, experiment: Experiment, error: BaseException
) -> None:
    """The server may still carry it out."""
    api.error = error
    with pytest.raises(type(error)):
        store.write_run(experiment, a_draft())
    api.error = None
    assert len(writers(now(store))) == 1
    store.write_run(experiment, a_draft())  # the next one has a mark of its own, and leaves this one
    assert len(writers(now(store))) == 1


@pytest.mark.parametrize("error", [TrackingError("no such run"), TrackingRefused("not yours")])
def test_after_a_refusal_nothing_is_in_doubt(
    store: RunStore, api: SharedMlflow, experiment: Experiment, error: BaseException
) -> None:
    api.error = error
    with pytest.raises(TrackingError):
        store.write_run(experiment, a_draft())
    assert marker_state(now(store))


def test_a_killed_writer_leaves_its_mark(store: RunStore, api: SharedMlflow, experiment: Experiment) -> None:
    WriteMarkers(api).writing(experiment.id).__enter__()  # and then no more of it
    store.write_run(experiment, a_draft())
    assert marker_state(now(store)) is None
    store.forget_writers(experiment, writers(now(store)))
    assert marker_state(now(store))


def test_a_mark_is_held_for_a_minute_and_then_set_anew(
    store: RunStore, api: SharedMlflow, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = [1_000.0, 9_000.0]
    monkeypatch.setattr(marks, "_now", lambda: (clocks[0], clocks[1]))
    seen = []
    with store.session():
        for monotonic, wall in ((0.0, 0.0), (LEASE_S - 1, LEASE_S - 1), (2.0, 2.0), (0.0, LEASE_S), (0.0, -1.0)):
            clocks = [clocks[0] + monotonic, clocks[1] + wall]  # also when one of them stood still, or was set back
            store.write_run(experiment, a_draft())
            seen.append(writers(now(store)))
    keys = {key for one in seen for key in one}
    values = [next(iter(one.values())) for one in seen]
    assert len(keys) == 1
    assert values[0] == values[1]
    assert len(set(values)) == 4
    assert marker_state(now(store))


def test_a_mark_that_was_taken_away_by_mistake_comes_back(
    store: RunStore, api: SharedMlflow, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.session():
        store.write_run(experiment, a_draft())
        store.forget_writers(experiment, writers(now(store)))
        mark = marker_state(now(store))
        monkeypatch.setattr(marks, "LEASE_S", 0.0)  # it was long ago
        store.write_run(experiment, a_draft())
        assert marker_state(now(store)) is None
    assert marker_state(now(store)) not in (None, mark)


def test_who_may_not_mark_may_not_write(store: RunStore, api: SharedMlflow, experiment: Experiment) -> None:
    """Or others would go on showing what they saw before."""
    api.refuses_marks = True
    with pytest.raises(TrackingError, match="read only"):
        store.write_run(experiment, a_draft())
    assert api.writes == 0
    store.forget_writers(experiment, ["tipbench.writing:x"])  # a reader who may not is no error
