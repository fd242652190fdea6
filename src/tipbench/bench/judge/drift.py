"""Drift: how far a judge deviates from the anchors and from itself, and whether its batch counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tipbench.bench.records import GoldItem, Slot, Verdict
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.bench.suites.rubric import Criterion, Rubric, Tolerances
from tipbench.bench.tracking.batches import AppliedBatch
from tipbench.core.identity import text_digest
from tipbench.statistics.drift import Consistency, Kappa, Offset, consistency, kappa, offset

ENOUGH_REPEATS = 8  # with fewer, repeats don't decide whether a batch counts


@dataclass(frozen=True)
class CriterionDrift:
    """A judge's drift on one criterion."""

    offset: Offset
    kappa: Kappa
    repeats: Consistency | None
    problems: tuple[str, ...]


@dataclass(frozen=True)
class RepeatDrift:
    """How far a judge deviates from itself on one criterion."""

    repeats: Consistency
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Drift:
    """A judge's drift in one batch, measured by its anchors and repeats."""

    anchors: int
    borrowed: int  # of these, anchors from the judge's earlier batches
    criteria: Mapping[str, CriterionDrift]  # empty if there are too few anchors
    repeats: Mapping[str, RepeatDrift] = field(default_factory=dict)  # only if there are too few anchors

    @property
    def assessable(self) -> bool:
        return bool(self.criteria)

    @property
    def quarantine(self) -> str:
        """Why the batch should not count; empty if it may."""
        found: Mapping[str, CriterionDrift | RepeatDrift] = self.criteria or self.repeats
        return "; ".join(f"{name}: {problem}" for name, one in found.items() for problem in one.problems)

    def as_data(self) -> dict[str, Any]:
        criteria = {name: asdict(found) for name, found in self.criteria.items()}
        repeats = {name: asdict(found) for name, found in self.repeats.items()}
        return {"anchors": self.anchors, "borrowed": self.borrowed, "criteria": criteria, "repeats": repeats}


def read_drift(data: Mapping[str, Any]) -> Drift:
    """Read what `Drift.as_data` returned."""
    criteria = {
        name: CriterionDrift(
            Offset(**found["offset"]),
            Kappa(**found["kappa"]),
            Consistency(**found["repeats"]) if found["repeats"] else None,
            tuple(found["problems"]),
        )
        for name, found in data["criteria"].items()
    }
    repeats = {
        name: RepeatDrift(Consistency(**found["repeats"]), tuple(found["problems"]))
        for name, found in data.get("repeats", {}).items()  # earlier versions did not store them
    }
    return Drift(data["anchors"], data["borrowed"], criteria, repeats)


class AnchorReferences:
    """Looks up the reference scores of anchors, for one judge: anchors made from its own scores are left out."""

    def __init__(self, gold: Iterable[GoldItem], rubric: Rubric, judge: str = "") -> None:
        gold = tuple(gold)
        self._own = {(anchor.id, text_digest(anchor.candidate)) for anchor in gold if judge in anchor.by}
        self._private = {
            (anchor.id, text_digest(anchor.candidate)): anchor.scores
            for anchor in gold
            if anchor.private and anchor.scores.keys() == rubric.criteria.keys()
        }

    def pairs(self, verdicts: Iterable[Verdict]) -> list[tuple[Verdict, Mapping[str, int]]]:
        """Return the verdicts on anchors with their reference scores.

        Scores of a team's own anchors are only in its file; where that is missing, these anchors are left out.
        """
        anchors = [verdict for verdict in verdicts if self._checks(verdict.slot)]
        return [(verdict, reference) for verdict in anchors if (reference := self._reference(verdict.slot))]

    def count_unknown(self, verdicts: Iterable[Verdict]) -> int:
        """Count the anchors whose reference scores are not available on this machine."""
        return sum(self._checks(v.slot) and not self._reference(v.slot) for v in verdicts)

    def _checks(self, slot: Slot) -> bool:
        return slot.kind == "anchor" and (slot.of, slot.digest) not in self._own

    def _reference(self, slot: Slot) -> Mapping[str, int]:
        return slot.reference or self._private.get((slot.of, slot.digest), {})


def borrowable(batches: Sequence[AppliedBatch]) -> list[Sequence[Verdict]]:
    """Return what can be borrowed from a judge's batches, which are in the order in which they were applied.

    That is the verdicts that count, newest first. A batch on hold ends the search: whoever scored before it has
    drifted, or has read the rubric again since.
    """
    found: list[Sequence[Verdict]] = []
    for one in reversed(batches):
        if one.quarantine and not one.accepted:
            break
        if one.counted:
            found.append(one.verdicts)
    return found


def is_new(batches: Sequence[AppliedBatch]) -> bool:
    """Return whether a judge's next batch has to bring its own anchors, because too few can be borrowed."""
    return sum(v.slot.kind == "anchor" for verdicts in borrowable(batches) for v in verdicts) < ENOUGH_ANCHORS


def assess(
    verdicts: Sequence[Verdict],
    rubric: Rubric,
    references: AnchorReferences,
    earlier: Sequence[Sequence[Verdict]],
    wanted: int,
) -> Drift:
    """Return a batch's drift.

    If it has fewer than `wanted` anchors, or too few repeats, borrow more from the judge's `earlier` batches, which are
    newest first.
    """
    pairs = references.pairs(verdicts)
    own = len(pairs)
    twice = _scored_twice(verdicts)
    for batch in earlier:
        pairs += references.pairs(batch)[: max(0, wanted - len(pairs))]
        twice += _scored_twice(batch)[: max(0, ENOUGH_REPEATS - len(twice))]
    if len(pairs) < ENOUGH_ANCHORS:
        return Drift(len(pairs), len(pairs) - own, {}, _repeat_drift(twice, rubric))
    criteria = {
        name: _criterion(
            criterion,
            rubric.tolerances,
            [(verdict.scores[name], reference[name]) for verdict, reference in pairs],
            [(first.scores[name], second.scores[name]) for first, second in twice],
        )
        for name, criterion in rubric.criteria.items()
    }
    return Drift(len(pairs), len(pairs) - own, criteria)


def _scored_twice(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, Verdict]]:
    by_slot = {verdict.slot.slot: verdict for verdict in verdicts}
    repeats = [verdict for verdict in verdicts if verdict.slot.kind == "repeat"]
    return [(by_slot[verdict.slot.of], verdict) for verdict in repeats if verdict.slot.of in by_slot]


def _repeat_drift(twice: Sequence[tuple[Verdict, Verdict]], rubric: Rubric) -> dict[str, RepeatDrift]:
    """Return the drift that repeats alone can show."""
    found = {}
    for name, criterion in rubric.criteria.items() if twice else ():
        repeats = consistency([(first.scores[name], second.scores[name]) for first, second in twice])
        found[name] = RepeatDrift(repeats, tuple(_inconsistency(repeats, criterion, rubric.tolerances)))
    return found


def _inconsistency(repeats: Consistency, criterion: Criterion, allowed: Tolerances) -> list[str]:
    limit = allowed.repeats * (criterion.max - criterion.min)
    if repeats.n < ENOUGH_REPEATS or repeats.mean_difference <= limit:
        return []
    return [f"the same item got scores {repeats.mean_difference:.2f} apart (allowed: {limit:.2f})"]


def _criterion(
    criterion: Criterion, allowed: Tolerances, pairs: Sequence[tuple[int, int]], twice: Sequence[tuple[int, int]]
) -> CriterionDrift:
    given, reference = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    scale = criterion.max - criterion.min
    off = offset(given, reference)
    agreement = kappa(given, reference, criterion.min, criterion.max)
    repeats = consistency(twice) if twice else None
    problems = []
    if abs(off.mean) > allowed.offset * scale:
        direction = "higher" if off.mean > 0 else "lower"
        problems.append(
            f"scores are {abs(off.mean):.2f} {direction} than the anchors' (allowed: {allowed.offset * scale:.2f})"
        )
    if agreement.value is None or agreement.value < allowed.kappa:
        value = "none" if agreement.value is None else f"{agreement.value:.2f}"
        problems.append(f"κ with the anchors is {value} (at least {allowed.kappa:.2f} wanted)")
    if repeats:
        problems += _inconsistency(repeats, criterion, allowed)
    return CriterionDrift(off, agreement, repeats, tuple(problems))
