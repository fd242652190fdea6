"""The task `collect`: one model's cells on one host. Every cell is stored in MLflow before the next is generated."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from tipbench.airflow.host_assignment import wait_for_free_memory
from tipbench.airflow.planning import Say, TaskLog, planned_request, shared_bench
from tipbench.airflow.request import CellsFailed
from tipbench.bench.collect.plan import Collected, Plan
from tipbench.bench.context import Share
from tipbench.bench.engines.catalog import Engines
from tipbench.bench.engines.interface import loads_on_a_server
from tipbench.bench.records import Answer, Failure, Outcome
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.server.jobs.progress import MAX_FAILURES

_PUSH_INTERVAL_S = 2.0
_MAX_REASON_CHARS = 300


def collect_share(
    planned: Mapping[str, Any],
    job: Mapping[str, str],
    settings: Settings,
    is_retry: bool,
    report: Callable[[dict[str, Any]], None],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Collect a model's missing cells, and on a retry of the task also those that failed; return its progress.

    Raises CellsFailed if any cell has no answer in the end.
    """
    options, _ = planned_request(planned)
    model = job["model"]
    progress = ModelProgress(model, report, say, time.monotonic)

    def wait_for_memory(engines: Engines) -> None:
        engine = engines.of(model)
        if loads_on_a_server(engine):
            run_models = [one["model"] for one in planned["models"] if one["ollama_url"] == job["ollama_url"]]
            wait_for_free_memory(engine, model, say, run_models)

    share = Share(("model", model), wait_for_memory)
    changed = {"models": model, "ollama_url": job["ollama_url"], "judge": None}
    with shared_bench(options, settings, progress, **changed) as bench:
        try:
            collected = bench.collect(retry_failed=planned["retry_failed"] or is_retry, share=share)
        finally:
            progress.finish()
    say(f"{model}: {collected.answered} cells answered with {collected.candidates} candidates.")
    _check_complete(model, collected)
    return progress.snapshot()


def _check_complete(model: str, collected: Collected) -> None:
    """Raise CellsFailed if cells are missing, so that the task does not succeed."""
    if collected.failed:
        first = "".join(f", the first with: {printable(one.reason, 200)}" for one in collected.first_failures[:1])
        raise CellsFailed(
            f"{collected.failed} of {collected.planned} cells of {model} failed{first}; they are stored as failures, "
            "and clear this task to try them again"
        )


class ModelProgress(TaskLog):
    """Reports the progress of a model at intervals, and always at the end."""

    def __init__(
        self, model: str, report: Callable[[dict[str, Any]], None], say: Say, clock: Callable[[], float]
    ) -> None:
        super().__init__(say)
        self._model = model
        self._is_planned = False
        self._report = report
        self._clock = clock
        self._next_push = 0.0
        self._progress: dict[str, Any] = {"model": model, "cells": 0, "stored": 0, "done": 0, "failed": 0, "empty": 0}
        self._progress |= {"current": "", "failures": []}

    def planned(self, plan: Plan) -> None:
        self._say(f"{self._model}: {len(plan.to_do)} cells to generate, {plan.stored} stored already.")
        self._progress |= {"cells": len(plan.to_do), "stored": plan.stored}
        self._is_planned = True
        self.push()

    def done(self, outcome: Outcome) -> None:
        self._progress["done"] += 1
        self._progress["current"] = printable(outcome.cell.label)
        if isinstance(outcome, Answer):
            self._progress["empty"] += not outcome.candidates
        else:
            self._count_failure(outcome)
        if self._clock() >= self._next_push:
            self.push()

    def finish(self) -> None:
        """Report the final progress, unless planning failed before there was any."""
        if self._is_planned:
            self.push()

    def push(self) -> None:
        self._report(self.snapshot())
        self._next_push = self._clock() + _PUSH_INTERVAL_S

    def snapshot(self) -> dict[str, Any]:
        return {**self._progress, "failures": list(self._progress["failures"])}

    def _count_failure(self, failure: Failure) -> None:
        self._progress["failed"] += 1
        if len(self._progress["failures"]) < MAX_FAILURES:
            self._progress["failures"].append(
                {"cell": printable(failure.cell.label), "reason": printable(failure.reason, _MAX_REASON_CHARS)}
            )
