"""A decision in an experiment, round by round: what its scores say by now, and which cells and judgements come next."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, cast

import numpy as np

from tipbench.bench.compare.inference import is_at_an_end
from tipbench.bench.decide.verdict import Verdict, rules_for
from tipbench.bench.judge.drift import is_new
from tipbench.bench.judge.sample import mix_around
from tipbench.bench.options import Options
from tipbench.bench.records import Batch, StoredCell
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.batches import (
    OF_DECISION,
    AppliedBatch,
    applied_batch,
    batch_runs,
    is_applied,
    read_batch,
)
from tipbench.bench.tracking.decisions import (
    DecisionPlan,
    budget_of,
    read_account,
    stopped_by,
    write_account,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import stored_cells
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.untrusted import shown
from tipbench.statistics.betting import BATCH, CLAIMS, Claim, decide, wealth_for
from tipbench.statistics.interval import Interval
from tipbench.statistics.units import Floats

POOL = "tip-pool"  # the suite of a decision that names none
_ROUNDS_AHEAD = 3  # that are generated before they are judged
# Options that change the answers; the others may differ from call to call.
_OF_THE_ANSWERS = ("suite", "models", "prompts", "n_tips", "temperature", "diversity", "seed", "max_tokens")
Pair = tuple[int, int]  # item, row
Candidate = tuple[str, int]  # run, number


@dataclass(frozen=True)
class OpenBatch:
    """A batch of the decision that a judge has and has not handed in."""

    run: StoredRun
    batch: Batch


@dataclass(frozen=True)
class Round:
    """Where a decision stands."""

    run: StoredRun
    plan: DecisionPlan
    verdict: Verdict
    cells: Mapping[Pair, StoredCell]
    judges: Mapping[int, str]  # item → the judge whose scores count for it, or who has it now
    applied: Sequence[AppliedBatch]  # in the order in which they were applied
    open_batches: Sequence[OpenBatch]

    @property
    def budget(self) -> int | None:
        """How many items judges may be given; None if there is no limit."""
        return budget_of(self.run)

    @property
    def stopped_by(self) -> str:
        return stopped_by(self.run)

    @property
    def spent(self) -> int:
        """Items that judges have scored, anchors and repeats included."""
        return sum(len(one.batch.slots) for one in self.applied)

    @property
    def given(self) -> int:
        """Items that judges have scored or have now."""
        return self.spent + sum(len(one.batch.slots) for one in self.open_batches)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to judge."""
        return not (self.verdict.is_decided or self.verdict.stopped)

    @property
    def wanted_cells(self) -> set[tuple[str, str, str]]:
        """The cells that the next rounds need and that have no answer yet: model, prompt and scenario."""
        if not self.is_open:
            return set()
        state = self.verdict.state
        ahead = range(state.items, min(len(self.plan.items), state.items + _ROUNDS_AHEAD * BATCH))
        pairs = {*state.missing, *((item, row) for item in ahead for row in state.judged_rows)}
        return {
            (*self.plan.rows[row], self.plan.items[item]) for item, row in pairs if not self._is_answered(item, row)
        }

    @property
    def failed(self) -> list[StoredCell]:
        """The cells that the next judgements need, and that got no answer."""
        found = (self.cells.get(pair) for pair in self.verdict.state.missing)
        return [cell for cell in found if cell is not None and cell.failure is not None]

    def next_for(self, judge: str) -> tuple[Candidate, ...]:
        """Return the candidates that this judge gets next; empty if there are none for this judge now.

        All rows of an item go to one judge. If other judges have the items of the next batch, this one gets items after
        them, as far as they are generated.
        """
        if not self.is_open:
            return ()
        state = self.verdict.state
        first = self._free(self._by_item(state.missing), judge)
        if first or not state.missing:
            return first
        ahead = range(state.items + BATCH, min(len(self.plan.items), state.items + _ROUNDS_AHEAD * BATCH))
        return self._free({item: list(state.judged_rows) for item in ahead}, judge)

    def items_for(self, judge: str) -> int:
        """Return the size of this judge's next batch with its anchors and repeats."""
        found = self.next_for(judge)
        new = is_new([one for one in self.applied if one.batch.judge == judge])
        return sum(mix_around(len(found), new)) if found else 0

    def exceeds_budget(self, judge: str) -> bool:
        """Return whether the judge's next batch would exceed the budget."""
        return self.budget is not None and self.given + self.items_for(judge) > self.budget

    def as_data(self) -> dict[str, Any]:
        return {
            **self.verdict.as_data(),
            "spent": self.spent,
            "budget": self.budget,
            "open_batches": [
                {"judge": one.batch.judge, "items": len(one.batch.slots), "created_ms": one.batch.created_ms}
                for one in self.open_batches
            ],
        }

    def _by_item(self, pairs: Sequence[Pair]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for item, row in pairs:
            found.setdefault(item, []).append(row)
        return found

    def _free(self, rows_by_item: Mapping[int, Sequence[int]], judge: str) -> tuple[Candidate, ...]:
        """Return the candidates of the first items that are this judge's own or nobody's; at most a batch of items."""
        open_to = {slot.run_id for one in self.open_batches for slot in one.batch.slots}
        found: list[Candidate] = []
        items = 0
        for item, rows in rows_by_item.items():
            if items == BATCH and item >= self.verdict.state.items:
                break
            cells = [self.cells.get((item, row)) for row in rows]
            if self.judges.get(item, judge) != judge or not all(cell and cell.failure is None for cell in cells):
                continue
            drawn = [
                (cell.run_id, drawn_candidate(self.plan, item, row, cell))
                for row, cell in zip(rows, cells, strict=True)
                if cell and cell.candidates and cell.run_id not in open_to
            ]
            items += bool(drawn)
            found += drawn
        return tuple(found)

    def _is_answered(self, item: int, row: int) -> bool:
        cell = self.cells.get((item, row))
        return cell is not None and cell.failure is None


def drawn_candidate(plan: DecisionPlan, item: int, row: int, cell: StoredCell) -> int:
    """Return the number of the candidate that stands for a row on an item."""
    return random.Random(f"{plan.secret}/{item}/{row}").randrange(cell.candidates)


# The start of a decision


def new_plan(plan_id: str, secret: str, options: Options, suite: Suite, now_ms: int, **rules: Any) -> DecisionPlan:
    """Draw the order of the items, one scenario of each cluster; `rules` are the claim and what is good enough."""
    rows = tuple((model, prompt) for model in options.model_names for prompt in options.prompt_names)
    if len(rows) < 2:
        raise InvalidInput(
            f"a decision is between rows, and {rows[0][0]} × {rows[0][1]} is only one; give another model or prompt"
        )
    rng = random.Random(f"{options.seed}/{secret}")
    by_cluster: dict[str, list[str]] = {}
    for scenario in suite.first_scenarios(options.n_scenarios):
        by_cluster.setdefault(scenario.factors.get(scenario.cluster or "", scenario.id), []).append(scenario.id)
    items = [rng.choice(ids) for ids in by_cluster.values()]
    rng.shuffle(items)
    return DecisionPlan(
        id=plan_id,
        created_ms=now_ms,
        secret=secret,
        rows=rows,
        items=tuple(items),
        rubric_digest=suite.rubric.digest,
        options=options.model_dump(mode="json", exclude={"experiment", "mlflow_url"}),
        **rules,
    )


def stored_options(plan: DecisionPlan, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a decision goes on with: those that it began with, and given ones that may differ.

    Raises InvalidInput if a given one would change the answers.
    """
    for key in _OF_THE_ANSWERS:
        if key in given and key in plan.options and given[key] != plan.options[key]:
            raise InvalidInput(
                f"this decision began with {key} {plan.options[key]!r}, and goes on with that; leave {key} "
                f"{given[key]!r} out, or choose another --experiment"
            )
    return {**plan.options, **given}


def check_rules(claim: str, good_enough: float, budget: int | None) -> None:
    """Raise Problems with every rule that can't be used."""
    problems = []
    if claim not in CLAIMS:
        problems.append(f"claim: must be {' or '.join(CLAIMS)} (given: {shown(claim, 40)})")
    if not (isfinite(good_enough) and good_enough >= 0):
        problems.append(f"good_enough: must be a number of points from 0 on (given: {shown(good_enough, 40)})")
    if budget is not None and budget < 1:
        problems.append(f"budget: must be at least 1 judgement (given: {budget})")
    if problems:
        raise Problems("the decision can't be started:", problems)


def check_same(stored: DecisionPlan, rules: Mapping[str, Any], rubric_digest: str, experiment: str) -> None:
    """Raise InvalidInput if the decision has other rules than these; None stands for those that it has."""
    for key, flag in (("claim", "--claim"), ("good_enough", "--good-enough")):
        if rules[key] is not None and getattr(stored, key) != rules[key]:
            raise InvalidInput(
                f"the decision in '{experiment}' began with {flag} {getattr(stored, key)}, and accounts can't be "
                f"changed after a look; leave {flag} out, or choose another --experiment"
            )
    if stored.rubric_digest != rubric_digest:
        raise InvalidInput(f"the rubric was changed since the decision in '{experiment}' began; start another one")


# A look


def look(
    store: RunStore, experiment: Experiment, found: tuple[StoredRun, DecisionPlan], rubric: Rubric, now_ms: int
) -> Round:
    """Compute the accounts from the scores by now, and store them: whoever looks leaves a trace.

    If scores that were looked at before have changed or don't count any more, the accounts start over, and ask for
    twice the wealth.
    """
    run, plan = found
    scale = rubric.lowest()["composite"], rubric.highest_composite()
    cells = _cells(store, experiment, plan)
    batches = [one for one in batch_runs(store, experiment) if one.tags.get(OF_DECISION) == plan.id]
    applied = _applied(store, batches)
    waiting = [OpenBatch(one, read_batch(store, one)) for one in batches if not is_applied(one)]
    pairs = {(cell.run_id, drawn_candidate(plan, *pair, cell)): pair for pair, cell in cells.items() if cell.candidates}
    judges = _item_judges(pairs, [*(one.batch for one in applied if one.counted), *(one.batch for one in waiting)])
    matrix = _matrix(plan, cells, _scores(pairs, applied, judges, rubric.digest), scale)
    before = read_account(store, run)
    restarts = int(before.get("restarts", 0)) + _changed(before, matrix)
    rules = rules_for(cast("Claim", plan.claim), len(plan.items), plan.good_enough, scale, wealth_for(restarts))
    state = decide(matrix, rules)
    names = tuple(f"{model} × {prompt}" for model, prompt in plan.rows)
    at_an_end = is_at_an_end(matrix[: state.items], Interval(0.0, 1.0))
    verdict = Verdict(names, rules, scale, state, restarts, at_an_end)
    now = Round(run, plan, verdict, cells, judges, applied, waiting)
    now = replace(now, verdict=replace(now.verdict, stopped=_why_stopped(now)))
    taken = [[None if np.isnan(value) else float(value) for value in line] for line in matrix[: state.items]]
    account = {**now.verdict.as_data(), "scores": taken, "order": plan.items[: state.items]}
    metrics = {"decision/items": float(state.items), "decision/judgements": float(state.judgements)}
    if now.verdict.expected_loss is not None:
        metrics["decision/expected_loss"] = now.verdict.expected_loss
    write_account(store, run, account, metrics, now_ms)
    return now


def _cells(store: RunStore, experiment: Experiment, plan: DecisionPlan) -> dict[Pair, StoredCell]:
    rows = {row: number for number, row in enumerate(plan.rows)}
    items = {item: number for number, item in enumerate(plan.items)}
    return {
        (items[cell.scenario], rows[cell.model, cell.prompt]): cell
        for cell in stored_cells(store, experiment)
        if cell.scenario in items and (cell.model, cell.prompt) in rows and cell.repeat == 0
    }


def _applied(store: RunStore, batches: Sequence[StoredRun]) -> list[AppliedBatch]:
    found = (applied_batch(store, run) for run in batches if is_applied(run))
    return sorted((one for one in found if one), key=lambda one: (one.applied_ms, one.batch.id))


def _item_judges(pairs: Mapping[Candidate, Pair], batches: Sequence[Batch]) -> dict[int, str]:
    """Return each item's judge: the first one of these batches that has the item."""
    judges: dict[int, str] = {}
    for batch in batches:
        for slot in batch.slots:
            pair = pairs.get((slot.run_id, slot.candidate))
            if pair is not None:
                judges.setdefault(pair[0], batch.judge)
    return judges


def _scores(
    pairs: Mapping[Candidate, Pair], applied: Sequence[AppliedBatch], judges: Mapping[int, str], rubric_digest: str
) -> dict[Pair, float]:
    """Return the raw composite that an item's judge gave each row, in batches that count; the first one stays."""
    found: dict[Pair, float] = {}
    for batch in applied:
        if not batch.counted or batch.batch.rubric_digest != rubric_digest:
            continue
        for verdict in batch.verdicts:
            pair = pairs.get((verdict.slot.run_id, verdict.slot.candidate))
            if pair and verdict.slot.kind == "candidate" and judges[pair[0]] == batch.batch.judge:
                found.setdefault(pair, verdict.composite)
    return found


def _matrix(
    plan: DecisionPlan, cells: Mapping[Pair, StoredCell], scores: Mapping[Pair, float], scale: tuple[float, float]
) -> Floats:
    """Return the scores as items × rows from 0 to 1; NaN is missing. An answer without a usable text is the lowest."""
    matrix = np.full((len(plan.items), len(plan.rows)), np.nan)
    for (item, row), cell in cells.items():
        if cell.is_empty:
            matrix[item, row] = 0.0
    for (item, row), score in scores.items():
        matrix[item, row] = (score - scale[0]) / (scale[1] - scale[0])
    return matrix


def _changed(account: Mapping[str, Any], matrix: Floats) -> bool:
    """Return whether a score that was looked at is another one now, or is gone."""
    for item, line in enumerate(account.get("scores", ())):
        for row, seen in enumerate(line):
            if seen is not None and not abs(matrix[item, row] - seen) < 1e-9:
                return True
    return False


def _why_stopped(now: Round) -> str:
    """Return why the decision does not go on although nothing is decided; empty if it does."""
    if now.verdict.is_decided:
        return ""
    if not now.verdict.state.missing:
        return "the pool is used up"
    if now.stopped_by:
        return f"{now.stopped_by} stopped it"
    served = [judge for judge in {"", *now.judges.values()} if now.next_for(judge)]
    if served and not now.open_batches and all(map(now.exceeds_budget, served)):
        return f"the budget of {now.budget:,} judgements is used up"
    return ""
