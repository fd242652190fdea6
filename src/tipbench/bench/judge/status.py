"""The status of an experiment's judges: their drift over time, and how far they agree with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.records import Verdict
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import AppliedBatch
from tipbench.statistics.agreement import krippendorff_alpha, weighted_kappa

_MAX_DISPUTED = 5
Item = tuple[str, int]


@dataclass(frozen=True)
class BatchLine:
    """One applied batch."""

    judge: str
    batch: str
    applied_ms: int
    candidates: int
    state: str  # "counts", "provisional", "in quarantine", "accepted"
    quarantine: str
    accepted: str
    drift: Mapping[str, Any]


@dataclass(frozen=True)
class PairKappa:
    """The agreement of two judges on the candidates that both scored."""

    judges: tuple[str, str]
    shared: int
    kappa: Mapping[str, float | None]  # by criterion


@dataclass(frozen=True)
class Disputed:
    """A candidate that judges scored differently."""

    item: Item
    spread: int
    scores: Mapping[str, Mapping[str, int]]  # judge → criterion → score


@dataclass(frozen=True)
class JudgeStatus:
    """Everything about the judges of an experiment."""

    batches: tuple[BatchLine, ...]
    alpha: Mapping[str, float | None]  # by criterion, over the judges that count; empty for fewer than two
    pairs: tuple[PairKappa, ...]
    disputed: tuple[Disputed, ...]
    overruled: Mapping[str, tuple[int, int]]  # flag → (overruled, checked): how often judges overruled code


def judge_status(batches: Sequence[AppliedBatch], rubric: Rubric) -> JudgeStatus:
    verdicts = effective_verdicts(batches)
    several = len(verdicts) > 1
    counting = {judge: verdicts[judge] for judge in {batch.batch.judge for batch in batches if batch.counted}}
    return JudgeStatus(
        batches=tuple(_line(batch) for batch in batches),
        alpha={name: _alpha(counting, name) for name in rubric.criteria} if len(counting) > 1 else {},
        pairs=tuple(_pair(one, other, verdicts, rubric) for one, other in combinations(sorted(verdicts), 2)),
        disputed=_most_disputed(verdicts, rubric) if several else (),
        overruled=_overruled(verdicts, rubric),
    )


def _line(batch: AppliedBatch) -> BatchLine:
    state = "counts" if batch.counted else "in quarantine"
    if batch.batch.provisional:
        state = "provisional"
    elif batch.quarantine and batch.accepted:
        state = "accepted"
    candidates = sum(verdict.slot.kind == "candidate" for verdict in batch.verdicts)
    details = (batch.quarantine, batch.accepted, batch.drift)
    return BatchLine(batch.batch.judge, batch.batch.id, batch.applied_ms, candidates, state, *details)


def _alpha(verdicts: Mapping[str, Mapping[Item, Verdict]], name: str) -> float | None:
    items = sorted({item for own in verdicts.values() for item in own})
    return krippendorff_alpha(
        [[own[item].scores[name] if item in own else None for item in items] for _, own in sorted(verdicts.items())]
    )


def _pair(one: str, other: str, verdicts: Mapping[str, Mapping[Item, Verdict]], rubric: Rubric) -> PairKappa:
    shared = sorted(verdicts[one].keys() & verdicts[other].keys())
    kappa = {
        name: weighted_kappa(
            [verdicts[one][item].scores[name] for item in shared],
            [verdicts[other][item].scores[name] for item in shared],
            criterion.min,
            criterion.max,
        )
        for name, criterion in rubric.criteria.items()
    }
    return PairKappa((one, other), len(shared), kappa)


def _most_disputed(verdicts: Mapping[str, Mapping[Item, Verdict]], rubric: Rubric) -> tuple[Disputed, ...]:
    found = []
    for item in sorted({item for own in verdicts.values() for item in own}):
        scores = {judge: dict(own[item].scores) for judge, own in sorted(verdicts.items()) if item in own}
        if len(scores) > 1:
            spread = sum(
                max(own[name] for own in scores.values()) - min(own[name] for own in scores.values())
                for name in rubric.criteria
            )
            if spread:
                found.append(Disputed(item, spread, scores))
    return tuple(sorted(found, key=lambda one: (-one.spread, one.item))[:_MAX_DISPUTED])


def _overruled(verdicts: Mapping[str, Mapping[Item, Verdict]], rubric: Rubric) -> dict[str, tuple[int, int]]:
    """Count for each flag how often judges overruled the code's check, and how often code checked it."""
    given = [verdict for own in verdicts.values() for verdict in own.values()]
    return {
        name: (sum(name in verdict.overruled for verdict in given), sum(name in v.slot.flags for v in given))
        for name, flag in rubric.flags.items()
        if flag.check
    }
