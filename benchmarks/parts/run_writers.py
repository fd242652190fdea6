"""Three ways to write finished runs into one MLflow experiment: tipbench's own, and MLflow's two, as they come."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from benchmarks.parts.stored import opened
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunDraft

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow
from mlflow.entities import Metric, Param

for name in ("mlflow", "alembic"):
    logging.getLogger(name).setLevel(logging.ERROR)

Write = Callable[[Sequence[RunDraft]], None]
Writer = Callable[[str, Experiment], AbstractContextManager[Write]]  # (address of MLflow, experiment)
_AT_ONCE = 64  # as a collection delivers its cells


@contextmanager
def tipbench(url: str, experiment: Experiment) -> Iterator[Write]:
    with opened(url) as store, store.session():

        def write(drafts: Sequence[RunDraft]) -> None:
            for start in range(0, len(drafts), _AT_ONCE):
                store.write_runs(experiment, drafts[start : start + _AT_ONCE])

        yield write


@contextmanager
def mlflow_client(url: str, experiment: Experiment) -> Iterator[Write]:
    client = mlflow.MlflowClient(url)

    def write(drafts: Sequence[RunDraft]) -> None:
        for draft in drafts:
            run = client.create_run(experiment.id, draft.started_ms, dict(draft.tags), draft.name)
            client.log_batch(
                run.info.run_id,
                metrics=[Metric(key, value, draft.ended_ms, 0) for key, value in draft.metrics.items()],
                params=[Param(key, value) for key, value in draft.params.items()],
            )
            for file, text in draft.texts.items():
                client.log_text(run.info.run_id, text, file)
            client.set_terminated(run.info.run_id, draft.status, draft.ended_ms)

    yield write


@contextmanager
def mlflow_fluent(url: str, experiment: Experiment) -> Iterator[Write]:
    mlflow.set_tracking_uri(url)
    mlflow.set_experiment(experiment_id=experiment.id)

    def write(drafts: Sequence[RunDraft]) -> None:
        for draft in drafts:
            with mlflow.start_run(run_name=draft.name, tags=dict(draft.tags)):
                mlflow.log_params(dict(draft.params))
                mlflow.log_metrics(dict(draft.metrics))
                for file, text in draft.texts.items():
                    mlflow.log_text(text, file)

    yield write
