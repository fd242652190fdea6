"""Converts a decision to an MLflow run, and back.

What was drawn at its start never changes. The account is stored in a file named by a digest of its content, and a tag
names the current one: so every look that somebody had stays on record, and anybody can compute it again. Two more tags
may change: the budget, and who has stopped the decision.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tipbench.bench.tracking.batches import OF_DECISION
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import KIND, SCHEMA
from tipbench.bench.tracking.store import RunDraft, RunStore
from tipbench.core.errors import StoredDataDamaged
from tipbench.core.identity import text_digest
from tipbench.core.untrusted import json_text

DECISION = "decision"
_PLAN = "decision.json"
_ACCOUNT = "tipbench.account"
_BUDGET = "tipbench.budget"
_STOPPED = "tipbench.stopped"  # by whom; empty or missing if nobody has


@dataclass(frozen=True)
class DecisionPlan:
    """What a decision is about, drawn once at its start."""

    id: str
    created_ms: int
    secret: str  # draws the candidates
    rows: tuple[tuple[str, str], ...]  # model and prompt; the order breaks ties
    items: tuple[str, ...]  # scenarios in the order in which they are judged, one of each cluster
    claim: str
    good_enough: float  # points
    rubric_digest: str
    options: Mapping[str, Any] = field(default_factory=dict)  # that the answers are generated with


@dataclass(frozen=True)
class DecisionSummary:
    """What a comparison reports about a decision, as it was last looked at; rows are named "model × prompt"."""

    says: str
    next: str
    decided: bool
    proven: bool
    pick: str  # empty before the first look
    expected_loss: float | None
    likely_left: int | None
    rows: tuple[str, ...]  # those that are in first, by their means
    out: tuple[str, ...]


def write_decision(
    store: RunStore, experiment: Experiment, plan: DecisionPlan, rubric_text: str, budget: int | None
) -> None:
    store.write_run(
        experiment,
        RunDraft(
            name=f"decision between {len(plan.rows)} rows",
            started_ms=plan.created_ms,
            ended_ms=plan.created_ms,
            tags={
                KIND: DECISION,
                "tipbench.schema": SCHEMA,
                OF_DECISION: plan.id,
                _BUDGET: _budget_tag(budget),
                "mlflow.source.name": "tipbench",
            },
            params={"claim": plan.claim, "good_enough": str(plan.good_enough), "rows": str(len(plan.rows))},
            texts={_PLAN: json_text(asdict(plan)), "rubric.md": rubric_text},
        ),
    )


def find_decision(store: RunStore, experiment: Experiment) -> tuple[StoredRun, DecisionPlan] | None:
    """Return the experiment's decision with its run; None if there is none."""
    for run in store.runs(experiment, {KIND: DECISION}):
        try:
            data = json.loads(store.text(run, _PLAN) or "")
            rows = tuple((str(model), str(prompt)) for model, prompt in data["rows"])
            return run, DecisionPlan(**{**data, "rows": rows, "items": tuple(data["items"])})
        except (ValueError, KeyError, TypeError) as error:
            raise StoredDataDamaged(f"the decision in run {run.run_id} can't be read: {error!r}") from error
    return None


def budget_of(run: StoredRun) -> int | None:
    """Return how many items judges may be given; None if there is no limit."""
    text = run.tags.get(_BUDGET, "")
    return int(text) if text.isdecimal() else None


def stopped_by(run: StoredRun) -> str:
    return run.tags.get(_STOPPED, "")


def set_budget(store: RunStore, run: StoredRun, budget: int | None, at_ms: int) -> None:
    store.extend_run(run, {_BUDGET: _budget_tag(budget)}, at_ms=at_ms)


def set_stopped(store: RunStore, run: StoredRun, by: str, at_ms: int) -> None:
    """Record who stopped the decision; an empty name takes that back."""
    if stopped_by(run) != by:
        store.extend_run(run, {_STOPPED: by}, at_ms=at_ms)


def _budget_tag(budget: int | None) -> str:
    return "" if budget is None else str(budget)


def read_account(store: RunStore, run: StoredRun) -> dict[str, Any]:
    """Return the account as it was last looked at; empty before the first look."""
    name = run.tags.get(_ACCOUNT)
    if not name:
        return {}
    try:
        found: dict[str, Any] = json.loads(store.text(run, name) or "")
        return found
    except ValueError as error:
        raise StoredDataDamaged(f"{name} of run {run.run_id} can't be read: {error!r}") from error


def summarize_decision(store: RunStore, experiment: Experiment) -> DecisionSummary | None:
    """Return the experiment's decision as it was last looked at; None if it holds none, or nobody has looked yet."""
    found = find_decision(store, experiment) if OF_DECISION in experiment.tags else None
    account = read_account(store, found[0]) if found else {}
    if found is None or not account:
        return None
    try:
        rows = sorted(account["rows"], key=lambda row: (row["out_after"] is not None, -(row["mean"] or 0.0)))
        return DecisionSummary(
            says=str(account["says"]),
            next=str(account["next"]),
            decided=account["winner"] is not None,
            proven=bool(account["proven"]),
            pick=str(account["leader"] or ""),
            expected_loss=account["expected_loss"],
            likely_left=account["likely_left"],
            rows=tuple(str(row["row"]) for row in rows),
            out=tuple(str(row["row"]) for row in rows if row["out_after"] is not None),
        )
    except (KeyError, TypeError) as error:
        raise StoredDataDamaged(f"the account of run {found[0].run_id} can't be read: {error!r}") from error


def write_account(
    store: RunStore, run: StoredRun, account: Mapping[str, Any], metrics: Mapping[str, float], at_ms: int
) -> None:
    """Store the account; nothing is written if it is the current one."""
    text = json_text(account)
    name = f"account-{text_digest(text)[:12]}.json"
    if run.tags.get(_ACCOUNT) != name:
        store.extend_run(run, {_ACCOUNT: name}, metrics, {name: text}, at_ms=at_ms)
