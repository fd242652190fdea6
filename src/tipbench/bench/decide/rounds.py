"""A decision in an experiment, round by round: what its scores say by now, and which cells and judgements come next."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tipbench.bench.decide.verdict import Verdict, rules_for
from tipbench.bench.judge.sample import mix_around
from tipbench.bench.records import StoredCell
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
    find_decision,
    read_account,
    write_account,
    write_decision,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import stored_cells
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput
from tipbench.statistics.betting import BATCH, Claim, decide, wealth_for
from tipbench.statistics.units import Floats

_ROUNDS_AHEAD = 3  # that are generated before they are judged
Pair = tuple[int, int]  # item, row


@dataclass(frozen=True)
class Round:
    """Where a decision stands."""

    run: StoredRun
    plan: DecisionPlan
    verdict: Verdict
    cells: Mapping[Pair, StoredCell]
    spent: int  # items that judges were given, anchors and repeats included
    open_batches: Sequence[StoredRun]  # of this decision, not applied yet
    in_open: frozenset[tuple[str, int]]  # candidates in them: run, number

    @property
    def wanted_cells(self) -> set[tuple[str, str, str]]:
        """The cells that the next rounds need: model, prompt and scenario."""
        state = self.verdict.state
        ahead = range(state.items, min(len(self.plan.items), state.items + _ROUNDS_AHEAD * BATCH))
        pairs = {*state.missing, *((item, row) for item in ahead for row in state.judged_rows)}
        return {(*self.plan.rows[row], self.plan.items[item]) for item, row in pairs}

    @property
    def failed(self) -> list[StoredCell]:
        """The cells that the next judgements need, and that got no answer."""
        found = (self.cells.get(pair) for pair in self.verdict.state.missing)
        return [cell for cell in found if cell is not None and cell.failure is not None]

    @property
    def to_judge(self) -> tuple[tuple[str, int], ...]:
        """The candidates to judge next (run and number), without those that a judge has already."""
        drawn = (self._drawn(item, row) for item, row in self.verdict.state.missing)
        return tuple(one for one in drawn if one is not None and one not in self.in_open)

    @property
    def next_items(self) -> int:
        """The size of the next batch, with the anchors and repeats that a judge gets who is new at the start."""
        return sum(mix_around(len(self.to_judge), is_new=not self.spent)) if self.to_judge else 0

    def _drawn(self, item: int, row: int) -> tuple[str, int] | None:
        cell = self.cells.get((item, row))
        return (
            None if cell is None or not cell.candidates else (cell.run_id, drawn_candidate(self.plan, item, row, cell))
        )


def drawn_candidate(plan: DecisionPlan, item: int, row: int, cell: StoredCell) -> int:
    """Return the number of the candidate that stands for a row on an item."""
    return random.Random(f"{plan.secret}/{item}/{row}").randrange(cell.candidates)


def start_decision(
    store: RunStore, experiment: Experiment, suite: Suite, plan: Mapping[str, Any], rng: random.Random
) -> None:
    """Draw a decision's order of items, one scenario of each cluster, and store it; one that is there must be the same.

    `plan` has the other fields of a DecisionPlan.
    """
    found = find_decision(store, experiment)
    if found is not None:
        _check_same(found[1], plan, experiment)
        return
    by_cluster: dict[str, list[str]] = {}
    for scenario in suite.scenarios:
        by_cluster.setdefault(scenario.factors.get(scenario.cluster or "", scenario.id), []).append(scenario.id)
    items = [rng.choice(ids) for ids in by_cluster.values()]
    rng.shuffle(items)
    write_decision(store, experiment, DecisionPlan(items=tuple(items), **plan))


def _check_same(stored: DecisionPlan, plan: Mapping[str, Any], experiment: Experiment) -> None:
    for key, name in (("rows", "models and prompts"), ("claim", "--claim"), ("good_enough", "--good-enough")):
        if getattr(stored, key) != plan[key]:
            raise InvalidInput(
                f"experiment '{experiment.name}' holds a decision with other {name}; run it with the same, or choose "
                f"another --experiment"
            )
    if stored.rubric_digest != plan["rubric_digest"]:
        raise InvalidInput(f"the rubric was changed since the decision in '{experiment.name}' began; start another one")


def look(store: RunStore, experiment: Experiment, rubric: Rubric, now_ms: int) -> Round:
    """Compute the accounts from the scores by now, and store them: whoever looks leaves a trace.

    If scores that were looked at before have changed or don't count any more, the accounts start over, and ask for
    twice the wealth.
    """
    found = find_decision(store, experiment)
    if found is None:
        raise InvalidInput(f"experiment '{experiment.name}' holds no decision; 'tipbench decide' starts one")
    run, plan = found
    low, high = rubric.lowest()["composite"], rubric.highest_composite()
    cells = _cells(store, experiment, plan)
    batches = [one for one in batch_runs(store, experiment) if one.tags.get(OF_DECISION) == plan.id]
    scores = _scores(store, plan, cells, batches, rubric)
    matrix = _matrix(plan, cells, scores, (low, high))
    before = read_account(store, run)
    restarts = int(before.get("restarts", 0)) + _changed(before, matrix)
    rules = rules_for(cast("Claim", plan.claim), len(plan.items), plan.good_enough, (low, high), wealth_for(restarts))
    state = decide(matrix, rules)
    names = tuple(f"{model} × {prompt}" for model, prompt in plan.rows)
    stopped = "" if state.missing or state.is_over else "the pool is used up"
    verdict = Verdict(names, rules, (low, high), state, restarts, stopped)
    taken = [[None if np.isnan(value) else float(value) for value in line] for line in matrix[: state.items]]
    account = {**verdict.as_data(), "scores": taken, "order": plan.items[: state.items]}
    metrics = {"decision/items": float(state.items), "decision/judgements": float(state.judgements)}
    if verdict.expected_loss is not None:
        metrics["decision/expected_loss"] = verdict.expected_loss
    write_account(store, run, account, metrics, now_ms)
    slots = [(batch, read_batch(store, batch)) for batch in batches]
    waiting = [(batch, read) for batch, read in slots if not is_applied(batch)]
    return Round(
        run=run,
        plan=plan,
        verdict=verdict,
        cells=cells,
        spent=sum(len(read.slots) for batch, read in slots if is_applied(batch)),
        open_batches=[batch for batch, _ in waiting],
        in_open=frozenset((slot.run_id, slot.candidate) for _, read in waiting for slot in read.slots if slot.run_id),
    )


def _cells(store: RunStore, experiment: Experiment, plan: DecisionPlan) -> dict[Pair, StoredCell]:
    rows = {row: number for number, row in enumerate(plan.rows)}
    items = {item: number for number, item in enumerate(plan.items)}
    return {
        (items[cell.scenario], rows[cell.model, cell.prompt]): cell
        for cell in stored_cells(store, experiment)
        if cell.scenario in items and (cell.model, cell.prompt) in rows and cell.repeat == 0
    }


def _scores(
    store: RunStore,
    plan: DecisionPlan,
    cells: Mapping[Pair, StoredCell],
    batches: Iterable[StoredRun],
    rubric: Rubric,
) -> dict[Pair, float]:
    """Return the raw composite that an item's judge gave each row, from batches that count, the first one first."""
    pairs = {(cell.run_id, drawn_candidate(plan, *pair, cell)): pair for pair, cell in cells.items() if cell.candidates}
    found: dict[Pair, float] = {}
    applied = (applied_batch(store, run) for run in batches if is_applied(run))
    counted: list[AppliedBatch] = [one for one in applied if one is not None and one.counted]
    for batch in sorted(counted, key=lambda one: (one.applied_ms, one.batch.id)):
        for verdict in batch.verdicts:
            pair = pairs.get((verdict.slot.run_id, verdict.slot.candidate))
            if pair is not None and verdict.slot.kind == "candidate" and batch.batch.rubric_digest == rubric.digest:
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
            if seen is not None and not np.isclose(matrix[item, row], seen, rtol=0, atol=1e-9):
                return True
    return False
