"""A small experiment that was collected in process and waits for a judge."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tipbench.bench.bench import Bench
from tipbench.bench.context import Context
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Bench]:
    numbers, seconds = count(1), count(1_000)
    api = EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
    context = Context(
        Settings({"TIPBENCH_HOME": str(tmp_path / "home")}),
        clock=lambda: float(next(seconds)),
        new_id=lambda: f"{next(numbers):016x}",
        store=RunStore(api),
    )
    yield Bench("x", context=context)
    api.close()


@pytest.fixture
def collected(work: Bench) -> Callable[..., Experiment]:
    """Collects with scripted models; what it is given goes before the defaults."""

    def collect(**given: Any) -> Experiment:
        with Bench("x", context=work.context) as bench:
            bench.collect(**{"models": "scripted/a,scripted/b", "n_scenarios": 2, **given})
            return bench.experiment

    return collect


@pytest.fixture
def experiment(collected: Callable[..., Experiment]) -> Experiment:
    return collected()


@pytest.fixture
def telling(work: Bench, experiment: Experiment) -> list[str]:
    """Every name that would tell a judge which model, prompt, cell or run a text comes from."""
    cells = work.snapshot().cells
    assert len(cells) == 12
    of_cells = {word for cell in cells for word in (cell.run_id, cell.key, cell.prompt_digest, *cell.settings)}
    return ["scripted", "v2-mentor", "v3-few-shot", "tip-bench", "mlflow", "experiment_id", "run_id", *sorted(of_cells)]
