"""collect: one model's cells on one host. Every cell is in MLflow before the next one is generated."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from tipbench.airflow.host_assignment import wait_until_vacant
from tipbench.airflow.planning import Say, TaskLog, planned_request, shared_bench
from tipbench.airflow.request import CellsFailed
from tipbench.bench.collect.plan import Collected, Plan
from tipbench.bench.context import Share
from tipbench.bench.engines.catalog import Engines
from tipbench.bench.engines.interface import loads_on_a_server
from tipbench.bench.records import Answer, Failure, Outcome
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.server.jobs.progress import FAILURES_KEPT

_EVERY_S = 2.0
_REASON_CHARS = 300


def collect_share(
    planned: Mapping[str, Any],
    job: Mapping[str, str],
    settings: Settings,
    again: bool,
    tell: Callable[[dict[str, Any]], None],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """All cells of a model that are missing; `again`: this is not the first try, so those that failed, too."""
    options, _ = planned_request(planned)
    model = job["model"]
    progress = ModelProgress(model, tell, say, time.monotonic)

    def wait_for_memory(engines: Engines) -> None:
        engine = engines.of(model)
        if loads_on_a_server(engine):
            ours = [one["model"] for one in planned["models"] if one["ollama_url"] == job["ollama_url"]]
            wait_until_vacant(engine, model, say, ours)

    share = Share(("model", model), wait_for_memory)
    changed = {"models": model, "ollama_url": job["ollama_url"], "judge": None}
    with shared_bench(options, settings, progress, **changed) as bench:
        try:
            collected = bench.collect(retry_failed=planned["retry_failed"] or again, share=share)
        finally:
            progress.finish()
    say(f"{model}: {collected.answered} cells answered with {collected.candidates} candidates.")
    _check_whole(model, collected)
    return progress.moment()


def _check_whole(model: str, collected: Collected) -> None:
    """A model whose cells are missing must not look done."""
    if collected.failed:
        first = "".join(f", the first with: {printable(one.reason, 200)}" for one in collected.first_failures[:1])
        raise CellsFailed(
            f"{collected.failed} of {collected.planned} cells of {model} failed{first}; they are stored as failures, "
            "and clearing this task tries them again"
        )


class ModelProgress(TaskLog):
    """Tells how far the model is, now and then, and always in the end."""

    def __init__(
        self, model: str, tell: Callable[[dict[str, Any]], None], say: Say, clock: Callable[[], float]
    ) -> None:
        super().__init__(say)
        self._model = model
        self._is_planned = False
        self._tell = tell
        self._clock = clock
        self._next = 0.0
        self._moment: dict[str, Any] = {"model": model, "cells": 0, "stored": 0, "done": 0, "failed": 0, "empty": 0}
        self._moment |= {"current": "", "failures": []}

    def planned(self, plan: Plan) -> None:
        self._say(f"{self._model}: {len(plan.to_do)} cells to generate, {plan.stored} stored already.")
        self._moment |= {"cells": len(plan.to_do), "stored": plan.stored}
        self._is_planned = True
        self.push()

    def done(self, outcome: Outcome) -> None:
        self._moment["done"] += 1
        self._moment["current"] = printable(outcome.cell.label)
        if isinstance(outcome, Answer):
            self._moment["empty"] += not outcome.candidates
        else:
            self._count_failure(outcome)
        if self._clock() >= self._next:
            self.push()

    def finish(self) -> None:
        """What was not planned has nothing to tell."""
        if self._is_planned:
            self.push()

    def push(self) -> None:
        self._tell(self.moment())
        self._next = self._clock() + _EVERY_S

    def moment(self) -> dict[str, Any]:
        return {**self._moment, "failures": list(self._moment["failures"])}

    def _count_failure(self, failure: Failure) -> None:
        self._moment["failed"] += 1
        if len(self._moment["failures"]) < FAILURES_KEPT:
            self._moment["failures"].append(
                {"cell": printable(failure.cell.label), "reason": printable(failure.reason, _REASON_CHARS)}
            )
