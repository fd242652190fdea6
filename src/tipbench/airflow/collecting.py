"""collect: one model's cells on one host. Every cell is in MLflow before the next one is generated."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from tipbench.airflow.failures import CellsFailed
from tipbench.airflow.free_memory import wait_until_vacant
from tipbench.airflow.place import shared_workplace
from tipbench.airflow.planning import planned_request
from tipbench.bench.collect.locks import collecting_alone
from tipbench.bench.collect.plan import Plan
from tipbench.bench.engines.catalog import engine_name, open_engines
from tipbench.bench.pipeline import Collected, admit_request, collect_cells, deliver_earlier, plan_collection
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
    options, suite = planned_request(planned)
    options = options.model_copy(update={"models": job["model"], "ollama_url": job["ollama_url"], "judge": None})
    told = _Told(job["model"], tell, time.monotonic)
    with (
        open_engines(options, settings) as engines,
        shared_workplace(options.mlflow_url, settings) as work,
        collecting_alone(engines, options, work.store.address, settings.home, True, say, part=("model", job["model"])),
    ):
        if engine_name(job["model"]) == "ollama":
            ours = [one["model"] for one in planned["models"] if one["ollama_url"] == job["ollama_url"]]
            wait_until_vacant(engines.named("ollama"), job["model"], say, ours)
        models = admit_request(options, suite, engines.of, settings.is_true("TIPBENCH_MEMORY_CHECK"))
        delivered = deliver_earlier(work, options.experiment)
        if delivered.cells:
            say(f"{delivered.cells} cells that an earlier try generated and could not store are in MLflow now.")
        plan = plan_collection(options, suite, models, work.store, planned["retry_failed"] or again)
        say(f"{job['model']}: {len(plan.to_do)} cells to generate, {plan.stored} stored already.")
        try:
            collected = collect_cells(options, suite, plan, engines.of, work, told, keep_up=True)
        finally:
            told.push()
    say(f"{job['model']}: {collected.answered} cells answered with {collected.candidates} candidates.")
    _check_whole(job["model"], plan, collected)
    return told.moment()


def _check_whole(model: str, plan: Plan, collected: Collected) -> None:
    """A model whose cells are missing must not look done."""
    if collected.failed:
        first = "".join(f", the first with: {printable(one.reason, 200)}" for one in collected.first_failures[:1])
        raise CellsFailed(
            f"{collected.failed} of {plan.cells} cells of {model} failed{first}; they are stored as failures, and "
            "clearing this task tries them again"
        )


class _Told:
    """Tells how far the model is, now and then, and always in the end."""

    def __init__(self, model: str, tell: Callable[[dict[str, Any]], None], clock: Callable[[], float]) -> None:
        self._tell = tell
        self._clock = clock
        self._next = 0.0
        self._moment: dict[str, Any] = {"model": model, "cells": 0, "stored": 0, "done": 0, "failed": 0, "empty": 0}
        self._moment |= {"current": "", "failures": []}

    def planned(self, plan: Plan) -> None:
        self._moment |= {"cells": len(plan.to_do), "stored": plan.stored}
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
