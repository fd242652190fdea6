"""A small experiment that was collected in process and waits for a judge."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.bench.options import make_options
from tipbench.bench.pipeline import admit_request, collect_cells, plan_collection
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.workplace import Workplace


class Nobody:
    """Watches nothing."""

    def planned(self, plan: object) -> None: ...

    def done(self, outcome: object) -> None: ...


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    numbers, seconds = count(1), count(1_000)
    api = EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
    yield Workplace(RunStore(api), lambda: float(next(seconds)), lambda: f"{next(numbers):016x}", tmp_path / "journal")
    api.close()


@pytest.fixture
def collected(work: Workplace) -> Callable[..., Experiment]:
    """Collects with scripted models; what it is given goes before the defaults."""

    def collect(**given: object) -> Experiment:
        options = make_options({"models": "scripted/a,scripted/b", "n_scenarios": 2, "experiment": "x", **given})
        suite, engine = load_suite(options.suite), ScriptedEngine()
        models = admit_request(options, suite, lambda _: engine)
        plan = plan_collection(options, suite, models, work.store)
        collect_cells(options, suite, plan, lambda _: engine, work, Nobody())
        return work.store.experiment("x")

    return collect


@pytest.fixture
def experiment(collected: Callable[..., Experiment]) -> Experiment:
    return collected()
