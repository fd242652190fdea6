"""How far the judges behind a leaderboard can be trusted, from what their batches say about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tipbench.bench.tracking.batches import AppliedBatch


@dataclass(frozen=True)
class Agreement:
    """A judge on one criterion: κ with the anchors, how much higher than theirs its scores are, how far from itself."""

    kappa: float | None
    kappa_low: float
    kappa_high: float
    offset: float
    offset_low: float
    offset_high: float
    repeats: float | None  # mean distance of two scorings of one item


@dataclass(frozen=True)
class JudgedBatch:
    """One batch that somebody scored."""

    judge: str
    batch: str
    applied_ms: int
    candidates: int
    state: str  # "counts", "provisional", "in quarantine" or "accepted"
    why: str  # it is in quarantine, or it was accepted; else empty
    anchors: int
    criteria: Mapping[str, Agreement]  # empty: not assessable


def judged_batches(batches: Sequence[AppliedBatch]) -> list[JudgedBatch]:
    """In the order of their applying."""
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
