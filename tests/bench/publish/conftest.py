"""A small experiment, and MLflow's pages in memory beside its real store."""

from contextlib import nullcontext

import pytest

from tests.bench.judge.conftest import collected, experiment, work
from tests.bench.publish.made_mlflow import MadeMlflow
from tipbench.bench.bench import Bench

__all__ = ["collected", "experiment", "pages", "work"]


@pytest.fixture
def pages(work: Bench, monkeypatch: pytest.MonkeyPatch) -> MadeMlflow:
    made = MadeMlflow()
    monkeypatch.setattr(work.store, "rest", lambda: nullcontext(made))
    return made
