"""What it costs to read, judge and compare a large experiment, in readings of its rows by SQLite alone, in one run.

Processor time, the best of several goes; each limit is about twice what was measured, so that twice the promised cost
fails.
"""

import asyncio
import gc
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bench.tracking.records_made import an_answer
from tests.integration.filling import filled
from tests.recommender.service.conftest import lived
from tests.web.small_app import Caller
from tipbench.bench.compare.leaderboard import leaderboard_of
from tipbench.bench.compare.snapshot import load_snapshot
from tipbench.bench.judge.apply import ApplyOptions, apply_file
from tipbench.bench.judge.export import export_batch
from tipbench.bench.judge.judges.catalog import person
from tipbench.bench.records import RubricText
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import cell_draft, count_cells
from tipbench.bench.tracking.store import RunStore
from tipbench.core import sqlite
from tipbench.core.settings import Settings
from tipbench.server.app import admin_server
from tipbench.web.authentication import open_access

SCENARIOS, MODELS = 250, 6
NAME = "tip-bench-large"
SUITE = load_suite("tip")
RUBRIC = SUITE.rubric


class Large(NamedTuple):
    store: RunStore
    experiment: Experiment
    path: Path
    unit_s: float  # one reading of all rows by SQLite


def best(work: Callable[[], object], goes: int = 5) -> float:
    seconds = []
    for _ in range(goes):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def _read_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table in ("tags", "params", "latest_metrics"):
            database.execute(f"SELECT * FROM {table}").fetchall()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    path = tmp_path_factory.mktemp("large") / "mlflow.db"
    store = RunStore(EmbeddedMlflow(f"{SCHEME}{path}"))
    text = RubricText(RUBRIC.name, RUBRIC.digest, RUBRIC.text, RUBRIC.lowest())
    made = store.ensure_experiment(NAME, {"tipbench.suite": "tip"})
    drafts = []
    for number in range(SCENARIOS * MODELS):
        scenario, model = divmod(number, MODELS)
        draft = cell_draft(an_answer(key=str(number)), text, "tip", "0.1.0", (number, number + 10))
        params = {"model": f"scripted/{model}", "scenario": f"s{scenario}", "factor.persona": f"p{scenario // 2}"}
        drafts.append(
            replace(draft, params={**draft.params, **params}, tags={**draft.tags, "tipbench.cluster": "persona"})
        )
    store.write_runs(made, drafts)
    yield Large(store, store.experiment(NAME), path, best(lambda: _read_rows(path)))
    store.close()


def _judge(large: Large, name: str) -> tuple[float, float]:
    """Processor seconds of an export for another judge, and of its apply."""
    ids = count()
    started = time.process_time()
    exported = export_batch(
        large.store,
        large.experiment,
        RUBRIC,
        person(name),
        0,
        lambda: f"{name}{next(ids)}",
        1_000,
        gold=SUITE.anchors,
    )
    exported_s = time.process_time() - started
    file = filled(exported.file)
    started = time.process_time()
    applied = apply_file(large.store, large.experiment, file, 2_000, ApplyOptions(accept_drift="drawn at random"))
    assert applied.runs == SCENARIOS * MODELS
    return exported_s, time.process_time() - started


def test_memory_of_a_snapshot(large: Large, tmp_path: Path) -> None:
    """In bytes that Python counts, of each cell: 1.2 kB, and 2.2 while it is read."""
    load_snapshot(large.store, large.experiment, tmp_path / "first", refresh=True)
    gc.collect()
    tracemalloc.start()
    snapshot = load_snapshot(large.store, large.experiment, tmp_path / "second", refresh=True)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(snapshot.cells) < 2_400
    assert peak / len(snapshot.cells) < 4_500


def test_costs_in_readings(large: Large, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_COARSEST_TICK_NS", 0)
    exported_s, applied_s = _judge(large, "first")

    def load(refresh: bool) -> object:
        return load_snapshot(large.store, large.store.experiment(large.experiment.name), tmp_path, refresh)

    first_s = best(lambda: load(refresh=True))
    again_s = best(lambda: load(refresh=False))
    snapshot = load_snapshot(large.store, large.experiment, tmp_path)
    board_s = best(lambda: leaderboard_of(snapshot, RUBRIC))
    counting_s = best(lambda: count_cells(large.store, large.experiment))
    costs = {  # processor seconds, and the most readings that they may be
        "snapshot, first sight": (first_s, 4.5),
        "snapshot, nothing changed": (again_s, 0.36),
        "leaderboard": (board_s, 6.0),
        "count, as for the list of experiments": (counting_s, 0.95),
        "export": (exported_s, 6.0),
        "apply": (applied_s, 10.5),
    }
    readings = {name: round(seconds / large.unit_s, 2) for name, (seconds, _) in costs.items()}
    assert [name for name, (_, most) in costs.items() if readings[name] > most] == [], readings


_PAGES = {
    "leaderboard": f"/experiments/leaderboard?experiment={NAME}",
    "runs": f"/experiments/runs?experiment={NAME}&limit=50&offset=100&model=scripted/1",
    "experiments": "/experiments",
}


def test_pages_in_readings(large: Large, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty readers wait for what each page takes again, and the first of all for what the leaderboard takes first."""
    monkeypatch.setattr(sqlite, "_COARSEST_TICK_NS", 0)
    _judge(large, "reader")
    token = "a-token-for-this-test-and-for-nothing-else"
    costs: dict[str, float] = {}
    for name, path in _PAGES.items():
        home = tmp_path / name
        settings = Settings({"TIPBENCH_HOME": str(home)})
        app = admin_server(f"{SCHEME}{large.path}", settings, open_access(home, time.time, admin_token=token))
        call = Caller(app)

        def ask(path: str = path, call: Caller = call) -> None:
            answer = call("GET", path, {"host": "localhost", "authorization": f"Bearer {token}"})
            assert answer.status == 200, answer.text

        costs[f"{name}, first sight"] = best(ask, goes=1)
        costs[f"{name}, again"] = best(ask)
        asyncio.run(lived(app))
    most = {  # readings
        "leaderboard, first sight": 22.0,
        "leaderboard, again": 0.11,
        "runs, first sight": 9.0,
        "runs, again": 0.18,
        "experiments, first sight": 9.0,
        "experiments, again": 0.1,
    }
    readings = {name: round(seconds / large.unit_s, 3) for name, seconds in costs.items()}
    assert [name for name in most if readings[name] > most[name]] == [], readings
