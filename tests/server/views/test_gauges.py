"""The gauges: right, cheap, bounded in time, and each for itself."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.integration.command import tipbench
from tests.server.views.conftest import EXPERIMENT
from tests.web.exposition import samples
from tests.web.small_app import Clock
from tipbench.bench.collect.journal import Entry, Journal, JournalHead
from tipbench.bench.tracking.runs import CellCounts, count_cells
from tipbench.bench.tracking.store import RunDraft
from tipbench.core.errors import RunnerUnreachable, StoredDataDamaged, TrackingUnreachable
from tipbench.core.paths import journal_folder
from tipbench.server.jobs.interface import Runner
from tipbench.server.metrics import gauges_of
from tipbench.server.views.gauges import BackgroundReading, Backlog, ExperimentGauges, Gauges
from tipbench.server.views.store_provider import StoreProvider
from tipbench.web.metrics import Metrics

LONG_S = 60.0


class FakeRunner:
    """Has jobs in these states."""

    def __init__(self, *states: str) -> None:
        self.states = states

    def jobs(self, limit: int = 100) -> list[Any]:
        return [SimpleNamespace(state=state) for state in self.states][:limit]


class Watched(Clock):
    """A clock that takes note of store errors too."""

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0
        self.operations: list[str] = []

    def observe_store(self, operation: str, seconds: float) -> None:
        self.operations.append(operation)

    def count_store_error(self) -> None:
        self.errors += 1


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def observed(stores: StoreProvider, watched: Watched) -> Iterator[StoreProvider]:
    with closing(StoreProvider(stores.address, stores.settings, time.time, stores.new_id, watched)) as provider:
        yield provider


@pytest.fixture
def make(observed: StoreProvider, watched: Watched) -> Iterator[Callable[..., Gauges]]:
    made: list[Gauges] = []

    def gauges(runner: Any = None) -> Gauges:
        made.append(Gauges(observed, cast(Runner, runner or FakeRunner()), watched))
        return made[-1]

    yield gauges
    for one in made:
        one.close()


def test_jobs_cells_and_what_waits_are_read_once_in_some_seconds(
    make: Callable[..., Gauges], watched: Watched, address: str
) -> None:
    gauges = make(FakeRunner("queued", "queued", "running", "finished"))
    found = gauges.read(LONG_S)
    assert found.jobs == {"queued": 2, "running": 1, "finished": 1}
    assert found.experiments == [ExperimentGauges(EXPERIMENT, CellCounts(16, 16, 0), 0)]
    assert found.backlog == Backlog(0, 0.0)
    assert gauges.read(LONG_S) == found
    assert watched.operations == ["list", "count"]
    watched.now += 6
    assert gauges.read(LONG_S) == found
    assert watched.operations == ["list", "count", "list"], "nothing was written, so nothing is counted"
    more = ("--models", "scripted/c", "--prompts", "v1", "--n-scenarios", "1", "--mlflow-url", address)
    assert tipbench("collect", "--experiment", EXPERIMENT, *more).status == 0
    watched.now += 6
    assert gauges.read(LONG_S).experiments == [ExperimentGauges(EXPERIMENT, CellCounts(17, 17, 0), 0)]
    watched.now += 301  # a run that somebody has deleted on MLflow's pages leaves no marker
    gauges.read(LONG_S)
    assert watched.operations.count("count") == 3


def test_what_can_not_be_read_is_missing_alone(
    make: Callable[..., Gauges],
    observed: StoreProvider,
    watched: Watched,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def unreachable(*_: Any, **__: Any) -> Any:
        raise TrackingUnreachable("nobody answers at http://mlflow:5000")

    gauges = make(FakeRunner("queued"))
    with monkeypatch.context() as patched:
        patched.setattr(observed, "store_if_any", unreachable)
        found = gauges.read(LONG_S)
        assert (found.jobs, found.experiments, found.backlog) == ({"queued": 1}, None, Backlog(0, 0.0))
        assert watched.errors == 1
        gauges.read(LONG_S)
        assert watched.errors == 1, "it is not asked again at once"
    assert caplog.messages == [
        "/metrics lacks cells, which can't be read: TrackingUnreachable: nobody answers at http://mlflow:5000"
    ]
    watched.now += 6
    assert gauges.read(LONG_S).experiments
    broken = make(SimpleNamespace(jobs=lambda limit: (_ for _ in ()).throw(RunnerUnreachable("no Airflow"))))
    found = broken.read(LONG_S)
    assert found.jobs is None
    assert found.experiments
    assert watched.errors == 1, "Airflow is no store"


def test_an_experiment_that_is_damaged_does_not_hide_the_others(
    make: Callable[..., Gauges],
    stores: StoreProvider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stores.store().ensure_experiment("tip-bench-\x1bdamaged", {"tipbench.suite": "tip"})

    def damaged(store: Any, experiment: Any) -> CellCounts:
        if "damaged" in experiment.name:
            raise StoredDataDamaged("a run is odd")
        return count_cells(store, experiment)

    monkeypatch.setattr("tipbench.server.views.gauges.count_cells", damaged)
    gauges = make()
    assert [one.experiment for one in gauges.read(LONG_S).experiments or ()] == [EXPERIMENT]
    (logged,) = caplog.messages
    assert logged.endswith("StoredDataDamaged: a run is odd")
    assert "\x1b" not in logged


def test_nobody_waits_for_what_takes_long() -> None:
    gate, values = threading.Event(), iter((1, 2))
    now = Clock()

    def slow() -> int:
        gate.wait(LONG_S)
        return next(values)

    reading = BackgroundReading(slow, lambda _: None, now)
    assert reading.latest(now()) is None
    gate.set()
    assert reading.latest(now() + LONG_S) == 1
    gate.clear()
    now.now += 6
    assert reading.latest(now()) == 1, "as it was"
    gate.set()
    assert reading.latest(now() + LONG_S) == 2
    reading.close()
    now.now += 1000
    assert reading.latest(now() + LONG_S) == 2, "it is read no more"


def test_what_costs_much_is_read_seldom() -> None:
    now, reads = Clock(), []

    def costly() -> int:
        reads.append(now())
        now.now += 2
        return len(reads)

    reading = BackgroundReading(costly, lambda _: None, now)
    for wait, expected in ((0, 1), (30, 1), (11, 2), (39, 2), (2, 3)):
        now.now += wait
        assert reading.latest(now() + LONG_S) == expected


def journal(folder: Path, name: str, cells: int, delivered: int = 0) -> Journal:
    made = Journal.create(folder, JournalHead("http://mlflow:5000", "x", "tip", {}), name)
    for number in range(cells):
        made.append(Entry(str(number), RunDraft("n", 1, 2, texts={"raw.txt": "a\nb"})))
    if delivered:
        made.mark_delivered(made.pending(delivered)[-1][1])
    return made


def test_a_backlog_is_as_old_as_its_oldest_journal_that_nobody_uses(
    make: Callable[..., Gauges], observed: StoreProvider, watched: Watched
) -> None:
    folder = journal_folder(observed.settings.home)
    in_use, all_delivered = journal(folder, "in-use", 3), journal(folder, "delivered", 2, delivered=2)
    os.utime(in_use.path, (0, 0))
    assert make().read(LONG_S).backlog == Backlog(3, 0.0)
    for name, cells, delivered, age_s in (("old", 5, 2, 7200), ("new", 1, 0, 3600)):
        left = journal(folder, name, cells, delivered)
        left.close()
        at = time.time() - age_s
        os.utime(left.path, (at, at))
    (folder / "foreign.jsonl").write_text("not ours\n")
    found = make().read(LONG_S).backlog
    assert found
    assert found.cells == 3 + 3 + 1
    assert 7200 <= found.age_s < 7300
    adopted = Journal.adopt(left.path)  # whoever looks takes nothing from whoever delivers
    assert adopted
    for one in (in_use, all_delivered, adopted):
        one.close()


def test_what_prometheus_gets_is_bounded(make: Callable[..., Gauges], stores: StoreProvider) -> None:
    for number in range(60):
        stores.store().ensure_experiment(f'tip-bench-{number}"\n\u202e' + "x" * 300, {"tipbench.suite": "tip"})
    text = Metrics("serve", "mlflow").text(gauges_of(make(FakeRunner("queued"))))
    found = samples(text)
    assert {key: value for key, value in found.items() if "tipbench_jobs" in key} == {
        'tipbench_jobs{state="cancelled"}': 0,
        'tipbench_jobs{state="failed"}': 0,
        'tipbench_jobs{state="finished"}': 0,
        'tipbench_jobs{state="queued"}': 1,
        'tipbench_jobs{state="running"}': 0,
    }
    cells = [key for key in found if key.startswith("tipbench_cells")]
    assert len(cells) == 3 * 50
    assert any("tip-bench-59" in key for key in cells)
    assert not any(EXPERIMENT in key for key in cells), "only the newest"
    assert max(map(len, cells)) < 250
    assert (found["tipbench_undelivered_cells{}"], found["tipbench_undelivered_age_seconds{}"]) == (0, 0)
