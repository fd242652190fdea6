"""The task `plan`: reports every problem of a request before anything is generated, and assigns models to hosts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tipbench.airflow.host_assignment import Hosts, assign_models, check_judge_model, host_indices
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


# A bench for workers: they all store their results in the same MLflow server.


class TaskLog(Observer):
    """Writes the notes of a bench to a task's log."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def note(self, text: str) -> None:
        self._say(text)


def shared_bench(options: Options, settings: Settings, observer: Observer, **changed: Any) -> Bench:
    """Open a bench whose results all workers can see; `changed` are options for this worker only."""
    shared = shared_address(options.mlflow_url, settings)
    return Bench.from_options(options.model_copy(update={**changed, "mlflow_url": shared}), Context(settings, observer))


def shared_address(url: str | None, settings: Settings) -> str:
    """Return the address of the MLflow server, with credentials if the worker's own setting is for the same server.

    Plans contain addresses without credentials. Raises InvalidInput for a database file, which other workers can't see
    and which is lost with the worker's disk.
    """
    own = settings.get("MLFLOW_TRACKING_URI")
    is_own = not url or without_credentials(own) == without_credentials(url)
    address = (own if is_own else url) or DEFAULT_SERVER
    if not address.startswith(("http://", "https://")):
        raise InvalidInput(
            f"mlflow_url: {without_credentials(address)} is not visible to every worker; use the address of an "
            "MLflow server, here or as MLFLOW_TRACKING_URI on the workers"
        )
    return address


def plan_run(
    request: Request, hosts: Sequence[str], settings: Settings, asked_ms: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Plan a run; return what the other tasks need. `hosts` are those that the DAG has pools for, in its order.

    Raises Problems with everything that is wrong with the request.
    """
    options = request.options
    refuse_credentials(options)
    indices = host_indices(options, hosts)
    suite = load_suite(options.suite)
    options = suite.apply_defaults(options)
    problems = _problems_of(options, suite, settings)
    found = Hosts(options, hosts, settings)
    models, shares = assign_models(options, suite, indices, found, problems)
    check_judge_model(options, found, settings, problems)
    for error in found.unreachable.values():
        say(f"{error}; its models go to other hosts.")
    if problems:
        raise Problems("the request can't be run, so nothing was generated:", problems)
    with shared_bench(options, settings, TaskLog(say)) as bench:
        if request.fresh:
            superseded = bench.start_over(models, before_ms=asked_ms)
            say(f"{superseded} stored cells no longer count: they stay in MLflow, tagged tipbench.superseded.")
        plan = bench.missing_cells(models, request.retry_failed)
        to_do = Counter(cell.model.name for cell in plan.to_do)
        options = options.model_copy(update={"mlflow_url": bench.store.address})
    assigned = [
        {
            "model": model,
            "ollama_url": hosts[index],
            "task_id": collect_task(index, hosts[index]),
            "cells": plan.cells // len(models),
            "to_do": to_do[model],
        }
        for index, share in enumerate(shares)
        for model in share
    ]
    return {
        "experiment": options.experiment,
        "suite": suite.name,
        "suite_digest": suite_digest(suite),
        "mlflow_url": options.mlflow_url,
        "options": options.model_dump(mode="json"),
        "judge_url": hosts[0],  # the judge task uses its pool, whichever hosts this run collects on
        "retry_failed": request.retry_failed,
        "cells": plan.cells,
        "stored": plan.stored,
        "to_do": len(plan.to_do),
        "models": assigned,
        "infos": [asdict(model) for model in models],
    }


def planned_request(planned: Mapping[str, Any]) -> tuple[Options, Suite]:
    """Return the planned options and the suite; raise InvalidInput if this worker's suite is not the planned one."""
    options = make_options({key: value for key, value in planned["options"].items() if value is not None}, "the plan")
    suite = load_suite(options.suite)
    if suite_digest(suite) != planned["suite_digest"]:
        raise InvalidInput(
            f"suite '{suite.name}' in {suite.folder} differs on this worker from where the run was planned; put the "
            "same files on all workers and clear this task"
        )
    return options, suite


def suite_digest(suite: Suite) -> str:
    """Return a digest of everything in a suite that affects answers or scores."""
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
