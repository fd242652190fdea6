"""The loop: one model at a time, failures as data, and an end when the engine is gone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.journal import Entry
from tipbench.bench.collect.loop import collect
from tipbench.bench.collect.plan import make_plan
from tipbench.bench.engines.residency import MemoryWatch
from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.bench.options import make_options
from tipbench.bench.records import Answer, Failure, Generation, GenerationRequest
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.runs import stored_cell, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import EngineUnreachable, GenerationFailed

SUITE = load_suite("tip")
OPTIONS = make_options({"models": "scripted/a,scripted/b", "prompts": "v1", "n_scenarios": 3, "experiment": "x"})


class Watched(ScriptedEngine):
    """Writes down what is asked of it, and fails on request."""

    def __init__(self, error: BaseException | None = None, at: int = -1) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._error, self._at = error, at

    def generate(self, request: GenerationRequest) -> Generation:
        self.calls.append(f"generate {request.model}")
        if self._error and len([call for call in self.calls if call.startswith("generate")]) == self._at + 1:
            raise self._error
        return super().generate(request)

    def unload(self, model: str) -> None:
        self.calls.append(f"unload {model}")


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}"))


def _collect(engine: Watched, store: RunStore, retry: bool = False) -> list[Answer | Failure]:
    models = [engine.describe(name) for name in OPTIONS.model_names]
    experiment = store.ensure_experiment("x", {})
    stored = [stored_cell(run) for run in stored_runs(store, experiment)]
    plan = make_plan(models, Grid(OPTIONS, SUITE, models), stored, retry)

    def keep(entries: Sequence[Entry]) -> None:
        store.write_runs(experiment, [entry.draft for entry in entries])

    with MemoryWatch() as watch:
        return list(collect(plan.to_do, lambda _: engine, SUITE, keep, watch, clock=lambda: 1.0))


def test_a_model_leaves_before_the_next_one_comes_and_the_last_one_leaves_too(store: RunStore) -> None:
    engine = Watched()
    _collect(engine, store)
    a, b = (["generate scripted/" + name] * 3 + ["unload scripted/" + name] for name in "ab")
    assert engine.calls == a + b
    store.close()


def test_a_failure_is_stored_with_its_reason_and_the_grid_goes_on(store: RunStore) -> None:
    outcomes = _collect(Watched(GenerationFailed("the runner died"), at=1), store)
    assert [type(outcome) for outcome in outcomes] == [Answer, Failure, Answer, Answer, Answer, Answer]
    failed = [cell for cell in map(stored_cell, stored_runs(store, store.experiment("x"))) if cell.failure]
    assert [cell.failure for cell in failed] == ["the runner died"]

    assert _collect(Watched(), store) == [], "a failure is not repeated unasked"
    again = _collect(Watched(), store, retry=True)
    assert [type(outcome) for outcome in again] == [Answer]
    cells = [stored_cell(run) for run in stored_runs(store, store.experiment("x"))]
    assert len(cells) == 6
    assert all(cell.failure is None for cell in cells), "the answer counts, not the failure before it"
    store.close()


def test_an_engine_that_is_gone_ends_it_and_nothing_is_taken_for_a_failure(store: RunStore) -> None:
    with pytest.raises(EngineUnreachable):
        _collect(Watched(EngineUnreachable("no route"), at=2), store)
    cells = [stored_cell(run) for run in stored_runs(store, store.experiment("x"))]
    assert len(cells) == 2
    assert all(cell.failure is None for cell in cells)
    assert len(_collect(Watched(), store)) == 4, "the next start does the rest"
    store.close()


def test_whatever_ends_it_the_model_leaves(store: RunStore) -> None:
    engine = Watched(KeyboardInterrupt(), at=1)
    with pytest.raises(KeyboardInterrupt):
        _collect(engine, store)
    assert engine.calls[-1] == "unload scripted/a"
    store.close()
