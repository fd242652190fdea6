"""plan: everything that can be wrong with a request is told before anything is generated; models get their hosts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tipbench.airflow.host_assignment import Hosts, check_judge_model, host_numbers, shared_out
from tipbench.airflow.hosts import collect_task
from tipbench.airflow.request import Request
from tipbench.bench.bench import Bench
from tipbench.bench.context import Context, Observer
from tipbench.bench.judge.judges.catalog import check_judge
from tipbench.bench.options import Options, make_options
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.address import DEFAULT_SERVER
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.identity import data_digest
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.server.jobs.simulation_asked import refuse_credentials

Say = Callable[[str], None]


# Where workers keep results: an MLflow server, which all of them can reach.


class TaskLog(Observer):
    """Writes what a bench notes to a task's log."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def note(self, text: str) -> None:
        self._say(text)


def shared_bench(options: Options, settings: Settings, observer: Observer, **changed: Any) -> Bench:
    """A bench whose results all workers see; `changed` are options for this worker alone."""
    shared = shared_address(options.mlflow_url, settings)
    return Bench.of(options.model_copy(update={**changed, "mlflow_url": shared}), Context(settings, observer))


def shared_address(url: str | None, settings: Settings) -> str:
    """Never a database file: what one worker writes there, another can't see, and it goes with the worker's disk.

    The plan names the place without credentials; a worker whose own setting names the same place takes them from there.
    """
    own = settings.get("MLFLOW_TRACKING_URI")
    is_own = not url or without_credentials(own) == without_credentials(url)
    named = (own if is_own else url) or DEFAULT_SERVER
    if not named.startswith(("http://", "https://")):
        raise InvalidInput(
            f"mlflow_url: {without_credentials(named)} can't be seen by every worker; give the address of an MLflow "
            "server, here or as MLFLOW_TRACKING_URI on the workers"
        )
    return named


def make_planned(
    request: Request, hosts: Sequence[str], settings: Settings, asked_ms: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """What the other tasks go by; `hosts`: those that the DAG has pools for, in its order."""
    options = request.options
    refuse_credentials(options)
    numbers = host_numbers(options, hosts)
    suite = load_suite(options.suite)
    options = suite.fit(options)
    problems = _problems_of(options, suite, settings)
    found = Hosts(options, hosts, settings)
    models, shares = shared_out(options, suite, numbers, found, problems)
    check_judge_model(options, found, settings, problems)
    for error in found.away.values():
        say(f"{error}; its models go to other hosts.")
    if problems:
        raise Problems("the request can't be run, so nothing was generated:", problems)
    with shared_bench(options, settings, TaskLog(say)) as bench:
        if request.fresh:
            aside = bench.start_over(models, before_ms=asked_ms)
            say(f"{aside} stored cells are set aside: they stay in MLflow, tagged tipbench.superseded.")
        plan = bench.missing_cells(models, request.retry_failed)
        to_do = Counter(cell.model.name for cell in plan.to_do)
        options = options.model_copy(update={"mlflow_url": bench.store.address})
    told = [
        {
            "model": model,
            "ollama_url": hosts[number],
            "task_id": collect_task(number, hosts[number]),
            "cells": plan.cells // len(models),
            "to_do": to_do[model],
        }
        for number, share in enumerate(shares)
        for model in share
    ]
    return {
        "experiment": options.experiment,
        "suite": suite.name,
        "suite_digest": suite_digest(suite),
        "mlflow_url": options.mlflow_url,
        "options": options.model_dump(mode="json"),
        "judge_url": hosts[0],  # whose pool the judge's task is in, whichever hosts this run collects on
        "retry_failed": request.retry_failed,
        "cells": plan.cells,
        "stored": plan.stored,
        "to_do": len(plan.to_do),
        "models": told,
        "infos": [asdict(model) for model in models],
    }


def planned_request(planned: Mapping[str, Any]) -> tuple[Options, Suite]:
    """The options as they were planned, and the suite; what this worker has must be what `plan` had."""
    options = make_options({key: value for key, value in planned["options"].items() if value is not None}, "the plan")
    suite = load_suite(options.suite)
    if suite_digest(suite) != planned["suite_digest"]:
        raise InvalidInput(
            f"suite '{suite.name}' in {suite.folder} is not on this worker what it was where the run was planned; put "
            "the same files on all workers and clear this task"
        )
    return options, suite


def suite_digest(suite: Suite) -> str:
    """Another one as soon as anything differs that shapes answers or scores."""
    return data_digest(
        {
            "scenarios": [[one.id, one.text] for one in suite.scenarios],
            "prompts": {version: prompt.digest for version, prompt in suite.prompts.items()},
            "rubric": suite.rubric.digest,
            "contract": repr(suite.contract),
        }
    )


def _problems_of(options: Options, suite: Suite, settings: Settings) -> list[str]:
    checks: list[Callable[[], object]] = [lambda: suite.first_scenarios(options.n_scenarios)]
    checks += [lambda version=version: suite.prompt(version) for version in options.prompt_names]  # type: ignore[misc]
    if judge := options.judge:
        checks.append(lambda: check_judge(judge, settings))
    problems = []
    for check in checks:
        try:
            check()
        except InvalidInput as error:
            problems.append(str(error))
    return problems
