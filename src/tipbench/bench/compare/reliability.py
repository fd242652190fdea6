"""Reliability of the judges behind a leaderboard, as measured in their batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tipbench.bench.tracking.batches import COST_USD, AppliedBatch


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
    cost_usd: float = 0.0  # of judging, if the judge tells


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
        cost_usd=batch.run.metrics.get(COST_USD, 0.0),
    )


def _agreement(figures: Mapping[str, Any]) -> Agreement:
    kappa, offset, repeats = figures["kappa"], figures["offset"], figures.get("repeats")
    return Agreement(
        *(kappa["value"], kappa["low"], kappa["high"]),
        *(offset["mean"], offset["low"], offset["high"]),
        repeats["mean_difference"] if repeats else None,
    )
