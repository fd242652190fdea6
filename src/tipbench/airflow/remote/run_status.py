"""The progress of a run, in words and figures, from what its tasks have reported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tipbench.airflow.remote.outcomes import join_names, name_of, one_line
from tipbench.airflow.remote.records import (
    COMPARE,
    DAG_ID,
    EXPORT,
    JUDGE,
    PLAN,
    PLANNED,
    PROBLEM,
    PROGRESS,
    RETURNED,
    WAIT,
    Task,
    is_collect,
)
from tipbench.airflow.remote.run_snapshot import RunSnapshot
from tipbench.core.untrusted import printable
from tipbench.server.jobs.progress import MAX_FAILURES, FailedCell, Phase, Progress

PAUSED = f"the DAG {DAG_ID} is paused in Airflow, so its runs don't start; unpause it there"
_STATES = {
    "success": "done",
    "failed": "failed",
    "upstream_failed": "failed",
    "up_for_retry": "to be tried again",
}
_NOT_STARTED = "Airflow has not started it yet; if that does not change, its scheduler is not running"


@dataclass(frozen=True)
class Share:
    """The task that collects one model, and what it has reported."""

    model: str
    task: Task
    reported: Mapping[str, Any]
    problem: str
    planned: int  # cells to generate, as of when the run was planned

    @property
    def before(self) -> int:
        """Return the cells that earlier tries have generated; a retried task reports only what was left to do."""
        return max(0, self.planned - self.count("cells")) if "cells" in self.reported else 0

    def count(self, key: str) -> int:
        return _count(self.reported, key)


class _Status(NamedTuple):
    phase: Phase
    message: str = ""
    waiting_items: int = 0


def progress_of(snapshot: RunSnapshot, experiment: str, now_ms: int) -> Progress:
    """Return the progress of a run, with an ETA while it collects."""
    planned = snapshot.mapping(snapshot.task(PLAN), PLANNED)
    shares = shares_of(snapshot)
    status = _final_status(snapshot) if snapshot.run.ended else _current_status(snapshot, shares)
    cells = max(_count(planned, "to_do"), sum(share.before + share.count("cells") for share in shares))
    done_now = sum(share.count("done") for share in shares)
    done = done_now + sum(share.before for share in shares)
    started_ms = min((share.task.started_ms for share in shares if share.task.started_ms is not None), default=None)
    is_collecting = status.phase == "collect" and started_ms is not None and done_now > 0 and done <= cells
    return Progress(
        phase=status.phase,
        message=status.message,
        experiment=experiment,
        cells=cells,
        stored=_count(planned, "stored"),
        done=done,
        failed=sum(share.count("failed") for share in shares),
        empty=sum(share.count("empty") for share in shares),
        current=_current_cell(shares),
        collect_started_ms=started_ms,
        updated_ms=now_ms,
        eta_s=max(0, now_ms - (started_ms or 0)) / 1000 / done_now * (cells - done) if is_collecting else None,
        failures=tuple(_failures(shares))[:MAX_FAILURES],
        waiting_items=status.waiting_items,
    )


def shares_of(snapshot: RunSnapshot) -> list[Share]:
    """Return the shares of all models that Airflow has created a task for."""
    to_do = _to_do(snapshot.mapping(snapshot.task(PLAN), PLANNED).get("models"))
    return [
        Share(
            model=name_of(task),
            task=task,
            reported=snapshot.mapping(task, PROGRESS),
            problem=one_line(snapshot.value(task, PROBLEM)),
            planned=to_do.get(task.label, 0),
        )
        for task in sorted(snapshot.tasks, key=lambda task: (task.id, task.map_index))
        if is_collect(task.id) and task.map_index >= 0 and task.state != "removed"
    ]


def _to_do(models: Any) -> dict[str, int]:
    """Return the planned number of cells to generate, by model."""
    found = [one for one in models if isinstance(one, dict)] if isinstance(models, list) else []
    return {str(one.get("model")): _count(one, "to_do") for one in found}


def _final_status(snapshot: RunSnapshot) -> _Status:
    """Return the last phase in which a worker has started a task; `done` if the run was compared."""
    phases: dict[str, Phase] = {EXPORT: "judge", JUDGE: "judge", WAIT: "judge", COMPARE: "compare"}
    if snapshot.run.state == "success" or snapshot.task(COMPARE).state == "success":
        return _Status("done")
    if snapshot.task(PLAN).state == "failed":
        return _Status("starting")
    started = [task.id for task in snapshot.tasks if task.has_started]
    reached = ["collect" if is_collect(task_id) else phases.get(task_id, "starting") for task_id in started]
    order: tuple[Phase, ...] = ("compare", "judge", "collect")
    return _Status(next((phase for phase in order if phase in reached), "starting"))


def _current_status(snapshot: RunSnapshot, shares: Sequence[Share]) -> _Status:
    if snapshot.run.state == "queued":
        return _Status("waiting", PAUSED if snapshot.is_paused else _NOT_STARTED)
    plan, export, compare = snapshot.task(PLAN), snapshot.task(EXPORT), snapshot.task(COMPARE)
    if not plan.ended:
        return _Status("starting", _task_message(snapshot, plan, "the run is being planned"))
    if plan.state == "failed":
        return _Status("starting", one_line(snapshot.value(plan, PROBLEM)))
    if not export.has_started and not export.ended:
        return _collecting(shares)
    if not export.ended:
        return _Status("judge", _task_message(snapshot, export, "a batch is being made of what waits for a judge"))
    if not compare.has_started and not compare.ended:
        return _judging(snapshot)
    if not compare.ended:
        return _Status("compare", _task_message(snapshot, compare, ""))
    return _Status("compare", one_line(snapshot.value(compare, RETURNED)))


def _collecting(shares: Sequence[Share]) -> _Status:
    if any(share.task.is_active or share.task.ended or share.task.state == "up_for_retry" for share in shares):
        return _Status("collect", "; ".join(_by_state(shares)))
    pools = sorted({share.task.pool for share in shares if share.task.state == "scheduled"})
    if pools:
        which = f"pool {pools[0]}" if len(pools) == 1 else f"the pools {join_names(pools)}"
        return _Status(
            "waiting",
            f"waits for a free slot of Airflow's {printable(which, 300)}: an Ollama loads one model at a time "
            "('tipbench airflow init' creates missing pools)",
        )
    if any(share.task.state == "queued" for share in shares):
        return _Status("waiting", "waits for an Airflow worker")
    return _Status("starting", "the run was planned")


def _by_state(shares: Sequence[Share]) -> Iterator[str]:
    """Yield a phrase for each state that models are in, with their names."""
    groups: dict[str, list[str]] = {"collecting": [], "done": [], "failed": [], "to be tried again": [], "waiting": []}
    for share in shares:
        if share.task.state != "skipped":
            state = "collecting" if share.task.is_active else _STATES.get(share.task.state, "waiting")
            groups[state].append(share.model)
    return (f"{what}: {join_names(names)}" for what, names in groups.items() if names)


def _judging(snapshot: RunSnapshot) -> _Status:
    exported = snapshot.mapping(snapshot.task(EXPORT), RETURNED)
    items = _count(exported, "items")
    judge, wait = snapshot.task(JUDGE), snapshot.task(WAIT)
    who = printable(str(exported.get("judge") or "the judge"), 60)
    if not judge.ended:
        judging = f"{who} is at {items} {'item' if items == 1 else 'items'}" if snapshot.run.conf.get("judge") else ""
        return _Status("judge", _task_message(snapshot, judge, judging))
    if wait.state == "awaiting_input":
        return _Status("judge", f"waits for the scores of batch {printable(str(exported.get('batch')), 60)}", items)
    if wait.ended:
        return _Status("compare", one_line(snapshot.value(wait, RETURNED)))
    return _Status("judge", _task_message(snapshot, wait, "checks whether the scores have arrived"), items)


def _task_message(snapshot: RunSnapshot, task: Task, doing: str) -> str:
    if task.state == "up_for_retry":
        why = one_line(snapshot.value(task, PROBLEM))
        return f"{name_of(task)} failed and is being retried{f': {why}' if why else ''}"
    if task.state == "scheduled" and task.pool not in ("", "default_pool"):
        return f"waits for a free slot of Airflow's pool {printable(task.pool, 80)}"
    return doing if task.is_active else "waits for an Airflow worker"


def _failures(shares: Sequence[Share]) -> Iterator[FailedCell]:
    """Yield models that failed as a whole, then single cells."""
    for share in shares:
        if share.problem:
            yield FailedCell(share.model, share.problem)
    for share in shares:
        failures = share.reported.get("failures")
        for one in failures if isinstance(failures, list) else ():
            if isinstance(one, dict):
                yield FailedCell(printable(str(one.get("cell")), 300), printable(str(one.get("reason")), 600))


def _current_cell(shares: Sequence[Share]) -> str:
    current = [share.reported.get("current") for share in shares if share.task.is_active]
    return next((printable(str(cell), 300) for cell in current if cell), "")


def _count(reported: Mapping[str, Any], key: str) -> int:
    value = reported.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
