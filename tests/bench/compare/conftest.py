"""A server's store with a few cells in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.bench.tracking.records_made import RUBRIC, a_failure, an_answer
from tests.bench.tracking.shared_mlflow import SharedMlflow
from tipbench.bench.records import Batch, Outcome, Slot
from tipbench.bench.tracking.batches import batch_runs, write_batch, write_verdicts
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.new_database import NewDatabase
from tipbench.bench.tracking.runs import cell_draft
from tipbench.bench.tracking.store import RunDraft, RunStore

NAME = "tip-bench-looked-at"
WRITTEN_BY_A_MODEL, SECRET = "Close the door.", "s3cr3t"

patient = settings(
    deadline=None, max_examples=50, suppress_health_check=list(HealthCheck)
)  # one store for all examples


@pytest.fixture
def api(tmp_path: Path, empty_databases: Path) -> Iterator[SharedMlflow]:
    path = tmp_path / "mlflow.db"
    NewDatabase(path, tmp_path / "mlflow-artifacts", empty_databases).finish()
    opened = SharedMlflow(f"{SCHEME}{path}")
    yield opened
    opened.close()


@pytest.fixture
def store(api: SharedMlflow) -> RunStore:
    return RunStore(api)


@pytest.fixture
def experiment(store: RunStore) -> Experiment:
    """Cells that were answered, failed, generated twice; two batches, one of them applied."""
    made = store.ensure_experiment(NAME, {})
    with store.session():
        for key, started, outcome in (
            ("a", 1_000, an_answer(key="a", repeat=0)),
            ("a", 1_000, an_answer(key="a", repeat=0)),  # at the same moment on two hosts
            ("b", 1_000, a_failure(key="b")),
            ("b", 2_000, an_answer(key="b")),
            ("c", 3_000, a_failure(key="c")),
            ("d", 4_000, an_answer((), key="d")),
        ):
            assert outcome.cell.key == key
            store.write_run(made, a_cell_draft(outcome, started))
        for batch_id in ("one", "two"):
            store_batch(store, made, batch_id)
        apply_batch(store, made, "one")
    return store.experiment(NAME)


def a_cell_draft(outcome: Outcome, started_ms: int = 5_000) -> RunDraft:
    return cell_draft(outcome, RUBRIC, "tip", "0.1.0", (started_ms, started_ms + 10))


def store_batch(store: RunStore, experiment: Experiment, batch_id: str) -> None:
    slot = Slot("slot", "run", 0, "digest", "digest", {})
    batch = Batch(batch_id, "ana", False, 0, RUBRIC.digest, 6_000, SECRET, (slot,))
    write_batch(store, experiment, batch, RUBRIC.name, RUBRIC.text)


def apply_batch(
    store: RunStore, experiment: Experiment, batch_id: str, kappa: float = 0.5, quarantine: str = ""
) -> None:
    [run] = [run for run in batch_runs(store, experiment) if run.tags["tipbench.batch"] == batch_id]
    drift = {"criteria": {"tone": {"kappa": {"value": kappa}}, "relevance": {"kappa": {"value": None}}}}
    write_verdicts(store, run, [], drift, quarantine, "", 7_000)
