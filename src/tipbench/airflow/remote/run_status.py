"""How far a run is, in words and figures, from what its tasks have told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tipbench.airflow.remote.outcomes import listed, name_of, sentence
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
from tipbench.airflow.remote.run_snapshot import Moment
from tipbench.core.untrusted import printable
from tipbench.server.jobs.progress import FAILURES_KEPT, FailedCell, Phase, Progress

PAUSED = f"the DAG {DAG_ID} is paused in Airflow, so that no run of it begins; unpause it there"
_STATES = {
    "success": "done",
    "failed": "failed",
    "upstream_failed": "failed",
    "up_for_retry": "to be tried again",
}
_NOT_BEGUN = "Airflow has not begun it yet; if that stays so, its scheduler is not running"


@dataclass(frozen=True)
class Share:
    """A model's part of the collecting."""

    model: str
    task: Task
    told: Mapping[str, Any]
    problem: str
    planned: int  # cells that were to be generated when the run was planned

    @property
    def before(self) -> int:
        """Cells that earlier tries have generated: a task that is tried again tells of what was left alone."""
        return max(0, self.planned - self.count("cells")) if "cells" in self.told else 0

    def count(self, key: str) -> int:
        return _count(self.told, key)


class _Standing(NamedTuple):
    phase: Phase
    message: str = ""
    waiting_items: int = 0


def progress_of(moment: Moment, experiment: str, now_ms: int) -> Progress:
    planned = moment.table(moment.task(PLAN), PLANNED)
    shares = shares_of(moment)
    standing = _ended(moment) if moment.run.ended else _standing(moment, shares)
    cells = max(_count(planned, "to_do"), sum(share.before + share.count("cells") for share in shares))
    lately = sum(share.count("done") for share in shares)
    done = lately + sum(share.before for share in shares)
    begun = min((share.task.started_ms for share in shares if share.task.started_ms is not None), default=None)
    is_collecting = standing.phase == "collect" and begun is not None and lately > 0 and done <= cells
    return Progress(
        phase=standing.phase,
        message=standing.message,
        experiment=experiment,
        cells=cells,
        stored=_count(planned, "stored"),
        done=done,
        failed=sum(share.count("failed") for share in shares),
        empty=sum(share.count("empty") for share in shares),
        current=_last(shares),
        collect_started_ms=begun,
        updated_ms=now_ms,
        eta_s=max(0, now_ms - (begun or 0)) / 1000 / lately * (cells - done) if is_collecting else None,
        failures=tuple(_failures(shares))[:FAILURES_KEPT],
        waiting_items=standing.waiting_items,
    )


def shares_of(moment: Moment) -> list[Share]:
    """Every model whose turn has come or will come, as far as Airflow has made a task of it."""
    to_do = _to_do(moment.table(moment.task(PLAN), PLANNED).get("models"))
    return [
        Share(
            model=name_of(task),
            task=task,
            told=moment.table(task, PROGRESS),
            problem=sentence(moment.value(task, PROBLEM)),
            planned=to_do.get(task.label, 0),
        )
        for task in sorted(moment.tasks, key=lambda task: (task.id, task.map_index))
        if is_collect(task.id) and task.map_index >= 0 and task.state != "removed"
    ]


def _to_do(models: Any) -> dict[str, int]:
    """By model, as it was planned."""
    found = [one for one in models if isinstance(one, dict)] if isinstance(models, list) else []
    return {str(one.get("model")): _count(one, "to_do") for one in found}


def _ended(moment: Moment) -> _Standing:
    """The last phase that a worker has had a task of; all of them where it was compared."""
    phases: dict[str, Phase] = {EXPORT: "judge", JUDGE: "judge", WAIT: "judge", COMPARE: "compare"}
    if moment.run.state == "success" or moment.task(COMPARE).state == "success":
        return _Standing("done")
    if moment.task(PLAN).state == "failed":
        return _Standing("starting")
    begun = [task.id for task in moment.tasks if task.has_begun]
    reached = ["collect" if is_collect(task_id) else phases.get(task_id, "starting") for task_id in begun]
    order: tuple[Phase, ...] = ("compare", "judge", "collect")
    return _Standing(next((phase for phase in order if phase in reached), "starting"))


def _standing(moment: Moment, shares: Sequence[Share]) -> _Standing:
    if moment.run.state == "queued":
        return _Standing("waiting", PAUSED if moment.is_paused else _NOT_BEGUN)
    plan, export, compare = moment.task(PLAN), moment.task(EXPORT), moment.task(COMPARE)
    if not plan.ended:
        return _Standing("starting", _of_one(moment, plan, "the run is being planned"))
    if plan.state == "failed":
        return _Standing("starting", sentence(moment.value(plan, PROBLEM)))
    if not export.has_begun and not export.ended:
        return _collecting(shares)
    if not export.ended:
        return _Standing("judge", _of_one(moment, export, "what waits for a judge is being put into a batch"))
    if not compare.has_begun and not compare.ended:
        return _judging(moment)
    if not compare.ended:
        return _Standing("compare", _of_one(moment, compare, ""))
    return _Standing("compare", sentence(moment.value(compare, RETURNED)))


def _collecting(shares: Sequence[Share]) -> _Standing:
    if any(share.task.is_at_it or share.task.ended or share.task.state == "up_for_retry" for share in shares):
        return _Standing("collect", "; ".join(_by_state(shares)))
    pools = sorted({share.task.pool for share in shares if share.task.state == "scheduled"})
    if pools:
        which = f"pool {pools[0]}" if len(pools) == 1 else f"the pools {listed(pools)}"
        return _Standing(
            "waiting",
            f"waits for a free slot of Airflow's {printable(which, 300)}: an Ollama has one model at a time "
            "('tipbench airflow init' makes pools that are missing)",
        )
    if any(share.task.state == "queued" for share in shares):
        return _Standing("waiting", "waits for a worker of Airflow's")
    return _Standing("starting", "the run is planned")


def _by_state(shares: Sequence[Share]) -> Iterator[str]:
    """Which models are done, and which are not, by name."""
    groups: dict[str, list[str]] = {"collecting": [], "done": [], "failed": [], "to be tried again": [], "waiting": []}
    for share in shares:
        if share.task.state != "skipped":
            state = "collecting" if share.task.is_at_it else _STATES.get(share.task.state, "waiting")
            groups[state].append(share.model)
    return (f"{what}: {listed(names)}" for what, names in groups.items() if names)


def _judging(moment: Moment) -> _Standing:
    exported = moment.table(moment.task(EXPORT), RETURNED)
    items = _count(exported, "items")
    judge, wait = moment.task(JUDGE), moment.task(WAIT)
    who = printable(str(exported.get("judge") or "the judge"), 60)
    if not judge.ended:
        judging = f"{who} is at {items} {'item' if items == 1 else 'items'}" if moment.run.conf.get("judge") else ""
        return _Standing("judge", _of_one(moment, judge, judging))
    if wait.state == "awaiting_input":
        return _Standing("judge", f"waits for the scores of batch {printable(str(exported.get('batch')), 60)}", items)
    if wait.ended:
        return _Standing("compare", sentence(moment.value(wait, RETURNED)))
    return _Standing("judge", _of_one(moment, wait, "looks whether the scores are there"), items)


def _of_one(moment: Moment, task: Task, doing: str) -> str:
    if task.state == "up_for_retry":
        why = sentence(moment.value(task, PROBLEM))
        return f"{name_of(task)} failed and is tried again{f': {why}' if why else ''}"
    if task.state == "scheduled" and task.pool not in ("", "default_pool"):
        return f"waits for a free slot of Airflow's pool {printable(task.pool, 80)}"
    return doing if task.is_at_it else "waits for a worker of Airflow's"


def _failures(shares: Sequence[Share]) -> Iterator[FailedCell]:
    """Models that failed as a whole, then single cells."""
    for share in shares:
        if share.problem:
            yield FailedCell(share.model, share.problem)
    for share in shares:
        failures = share.told.get("failures")
        for one in failures if isinstance(failures, list) else ():
            if isinstance(one, dict):
                yield FailedCell(printable(str(one.get("cell")), 300), printable(str(one.get("reason")), 600))


def _last(shares: Sequence[Share]) -> str:
    current = [share.told.get("current") for share in shares if share.task.is_at_it]
    return next((printable(str(cell), 300) for cell in current if cell), "")


def _count(told: Mapping[str, Any], key: str) -> int:
    value = told.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
