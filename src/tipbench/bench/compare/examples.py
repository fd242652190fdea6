"""The best and the worst candidates of each row, with the judges' notes: what is behind the figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tipbench.bench.compare.rows import RowKey, key_of
from tipbench.bench.records import StoredCell, Verdict
from tipbench.bench.tracking.batches import AppliedBatch

_EACH = 2  # number of best examples, and of worst ones
Item = tuple[str, int]  # run id, index of the candidate


@dataclass(frozen=True)
class Example:
    """A candidate with its scores, as means over the judges that scored it."""

    scenario: str
    text: str  # as the model wrote it: untrusted
    composite: float
    scores: Mapping[str, float]  # criteria, and flags as 0 or 1
    notes: tuple[str, ...]  # by judges: untrusted, too


@dataclass(frozen=True)
class Examples:
    """The examples of one row; no candidate is in both lists."""

    best: tuple[Example, ...]
    worst: tuple[Example, ...]


def pick_examples(
    cells: Sequence[StoredCell],
    verdicts: Sequence[Mapping[Item, Verdict]],
    text_of: Callable[[str, int], str],
    each: int = _EACH,
) -> dict[RowKey, Examples]:
    """Return the examples of each row; `verdicts` has one mapping per judge. Ties are broken by scenario name."""
    by_item: dict[Item, list[Verdict]] = {}
    for one in verdicts:
        for item, verdict in one.items():
            by_item.setdefault(item, []).append(verdict)
    by_run = {cell.run_id: cell for cell in cells}
    rows: dict[RowKey, list[tuple[float, str, int, Item]]] = {}
    for item, found in by_item.items():
        cell = by_run.get(item[0])
        if cell is not None:
            composite = fmean(verdict.composite for verdict in found)
            rows.setdefault(key_of(cell), []).append((composite, cell.scenario, cell.repeat, item))

    def example(composite: float, scenario: str, item: Item) -> Example:
        found = by_item[item]
        scores = {name: fmean(float(v.scores[name]) for v in found) for name in found[0].scores}
        flags = {name: fmean(float(v.flags[name]) for v in found) for name in found[0].flags}
        notes = tuple(verdict.note for verdict in found if verdict.note)
        return Example(scenario, text_of(*item), composite, {**scores, **flags}, notes)

    picked = {}
    for key, candidates in rows.items():
        best = sorted(candidates, key=lambda one: (-one[0], *one[1:]))[:each]
        worst = [one for one in sorted(candidates) if one not in best][:each]
        picked[key] = Examples(
            tuple(example(composite, scenario, item) for composite, scenario, _, item in best),
            tuple(example(composite, scenario, item) for composite, scenario, _, item in worst),
        )
    return picked


# Reliability of the judges behind a leaderboard, as measured in their batches.


@dataclass(frozen=True)
class Agreement:
    """A judge on one criterion: κ with the anchors, mean offset from their scores, and consistency with itself."""

    kappa: float | None
    kappa_low: float
    kappa_high: float
    offset: float
    offset_low: float
    offset_high: float
    repeats: float | None  # mean difference between two scorings of one item


@dataclass(frozen=True)
class JudgedBatch:
    """One batch that a judge scored."""

    judge: str
    batch: str
    applied_ms: int
    candidates: int
    state: str  # "counts", "provisional", "in quarantine" or "accepted"
    why: str  # the reason for quarantine, or for accepting it; else empty
    anchors: int
    criteria: Mapping[str, Agreement]  # empty: not assessable


def judged_batches(batches: Sequence[AppliedBatch]) -> list[JudgedBatch]:
    """Summarise batches, in the order in which they were applied."""
    return [_judged(batch) for batch in sorted(batches, key=lambda one: (one.applied_ms, one.batch.id))]


def _judged(batch: AppliedBatch) -> JudgedBatch:
    state, why = "counts", ""
    if batch.batch.provisional:
        state = "provisional"
    elif batch.quarantine:
        state, why = ("accepted", batch.accepted) if batch.accepted else ("in quarantine", batch.quarantine)
    return JudgedBatch(
        judge=batch.batch.judge,
        batch=batch.batch.id,
        applied_ms=batch.applied_ms,
        candidates=sum(verdict.slot.kind == "candidate" for verdict in batch.verdicts),
        state=state,
        why=why,
        anchors=int(batch.drift.get("anchors", 0)),
        criteria={name: _agreement(figures) for name, figures in batch.drift.get("criteria", {}).items()},
    )


def _agreement(figures: Mapping[str, Any]) -> Agreement:
    kappa, offset, repeats = figures["kappa"], figures["offset"], figures.get("repeats")
    return Agreement(
        *(kappa["value"], kappa["low"], kappa["high"]),
        *(offset["mean"], offset["low"], offset["high"]),
        repeats["mean_difference"] if repeats else None,
    )
