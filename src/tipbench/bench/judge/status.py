"""The status of an experiment's judges: whether they can be trusted, their drift over time, and how far they agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tipbench.bench.judge.judges.catalog import CATALOG
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.records import LEAST_AGREEMENT, SECONDS_A_JUDGEMENT, NextStep, Verdict, experiment_command
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import (
    BATCH,
    AppliedBatch,
    applied_batches,
    batch_runs,
    deciding_batch,
    is_in_quarantine,
)
from tipbench.bench.tracking.interface import NOT_COMPARED, Experiment
from tipbench.bench.tracking.runs import KIND
from tipbench.bench.tracking.store import RunStore
from tipbench.core.text import counted, duration
from tipbench.statistics.agreement import krippendorff_alpha, weighted_kappa

_CLOSE = 0.5  # share of the tolerance up to which an offset is called close
_MAX_DISPUTED = 5
Item = tuple[str, int]


@dataclass(frozen=True)
class BatchLine:
    """One applied batch."""

    judge: str
    batch: str
    applied_ms: int
    candidates: int
    state: str  # "counts", "provisional", "on hold", "accepted", "scored again" (was on hold; the scores are replaced)
    quarantine: str
    accepted: str
    drift: Mapping[str, Any]


@dataclass(frozen=True)
class JudgeLine:
    """One judge, over all batches."""

    judge: str
    batches: int
    candidates: int  # different ones
    state: str  # as a batch's; "1 of 3 on hold" where others count
    anchors: str  # how it agrees with the anchors, in a word or two
    trusted: bool | None  # None: too few anchors to tell
    on_hold: str  # why the newest batch on hold drifted; empty if none is


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

    judges: tuple[JudgeLine, ...]
    pending: int  # cells that wait for a judge whose scores count
    batches: tuple[BatchLine, ...]
    alpha: Mapping[str, float | None]  # by criterion, over the judges that count; empty for fewer than two
    pairs: tuple[PairKappa, ...]
    disputed: tuple[Disputed, ...]
    overruled: Mapping[str, tuple[int, int]]  # flag → (overruled, checked): how often judges overruled code


def judge_status(batches: Sequence[AppliedBatch], rubric: Rubric, pending: int = 0) -> JudgeStatus:
    verdicts = effective_verdicts(batches)
    several = len(verdicts) > 1
    counting = _counting(batches, verdicts)
    lines = tuple(_line(batch, counting.get(batch.batch.judge, {})) for batch in batches)
    return JudgeStatus(
        judges=tuple(
            _judge_line([line for line in lines if line.judge == judge], len(own), rubric)
            for judge, own in verdicts.items()
        ),
        pending=pending,
        batches=lines,
        alpha={name: _alpha(counting, name) for name in rubric.criteria} if len(counting) > 1 else {},
        pairs=tuple(_pair(one, other, verdicts, rubric) for one, other in combinations(sorted(verdicts), 2)),
        disputed=_most_disputed(verdicts, rubric) if several else (),
        overruled=_overruled(verdicts, rubric),
    )


def count_on_hold(store: RunStore, experiment: Experiment) -> int:
    """Count the batches on hold. Scores are read only if a batch may be."""
    if not any(is_in_quarantine(run) for run in store.iter_runs(experiment, {KIND: BATCH}, NOT_COMPARED)):
        return 0
    runs = batch_runs(store, experiment)
    deciding = deciding_batch(runs)
    batches = applied_batches(store, runs, deciding.tags["tipbench.rubric_digest"]) if deciding else []
    counting = _counting(batches, effective_verdicts(batches))
    return sum(_line(batch, counting.get(batch.batch.judge, {})).state == "on hold" for batch in batches)


def _counting(
    batches: Sequence[AppliedBatch], verdicts: Mapping[str, Mapping[Item, Verdict]]
) -> dict[str, Mapping[Item, Verdict]]:
    """Return the verdicts that count, by judge."""
    return {judge: verdicts[judge] for judge in {batch.batch.judge for batch in batches if batch.counted}}


def _line(batch: AppliedBatch, counting: Mapping[Item, Verdict]) -> BatchLine:
    """Describe a batch; `counting` holds the judge's verdicts that count."""
    items = [(v.slot.run_id, v.slot.candidate) for v in batch.verdicts if v.slot.kind == "candidate"]
    state = "counts" if batch.counted else "scored again" if all(item in counting for item in items) else "on hold"
    if batch.batch.provisional:
        state = "provisional"
    elif batch.quarantine and batch.accepted:
        state = "accepted"
    details = (batch.quarantine, batch.accepted, batch.drift)
    return BatchLine(batch.batch.judge, batch.batch.id, batch.applied_ms, len(items), state, *details)


def _judge_line(lines: Sequence[BatchLine], candidates: int, rubric: Rubric) -> JudgeLine:
    """Sum up a judge's batches, of which there is at least one; how it scores now is what its last batch shows."""
    held = [line for line in lines if line.state == "on hold"]
    current = [line for line in lines if line.state != "scored again"]
    state = current[-1].state if current else lines[-1].state
    if held:
        state = "on hold" if len(held) == len(current) else f"{len(held)} of {len(current)} on hold"
    assessed = [line for line in current if line.drift.get("criteria")]
    return JudgeLine(
        judge=lines[0].judge,
        batches=len(lines),
        candidates=candidates,
        state=state,
        anchors=_agreement(assessed[-1].drift["criteria"], rubric) if assessed else "too few anchors",
        trusted=None if not assessed else not any(line.quarantine for line in current),
        on_hold=held[-1].quarantine if held else "",
    )


def _agreement(criteria: Mapping[str, Any], rubric: Rubric) -> str:
    """Say in a word or two how a judge's scores lie to the anchors', by the criterion that deviates most."""
    tolerances = {name: rubric.tolerances.offset * (one.max - one.min) for name, one in rubric.criteria.items()}
    offsets = {name: criteria[name]["offset"]["mean"] for name in tolerances if name in criteria}
    most = max(offsets, key=lambda name: abs(offsets[name]) / tolerances[name])
    if abs(offsets[most]) <= _CLOSE * tolerances[most]:
        problems = [name for name, found in criteria.items() if found["problems"]]
        return f"erratic on {problems[0]}" if problems else "close"
    return f"{'mild' if offsets[most] > 0 else 'strict'} by {abs(offsets[most]):.1f} on {most}"


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


# The answer, for whoever shows the status.


@dataclass(frozen=True)
class StatusAnswer:
    """Whether the judges can be trusted, who is on hold, what waits, and what to do next."""

    says: str
    next: NextStep


def status_answer(status: JudgeStatus, experiment: str) -> StatusAnswer:
    waiting = f"{counted(status.pending, 'cell')} {'waits' if status.pending == 1 else 'wait'} for a judge."
    if not status.judges:
        says = f"No batch has been applied yet; {waiting}" if status.pending else "No batch has been applied yet."
        return StatusAnswer(says, _next_step(status, experiment))
    held = [f"The scores of {line.judge} are on hold and don't count ({line.on_hold})." for line in _on_hold(status)]
    sentences = [_trust(status), *held[:1], *([waiting] if status.pending else [])]
    if len(held) > 1:
        sentences[1] = f"The scores of {_names(_on_hold(status))} are on hold and don't count; --verbose says why."
    return StatusAnswer(" ".join(sentence for sentence in sentences if sentence), _next_step(status, experiment))


def _on_hold(status: JudgeStatus) -> list[JudgeLine]:
    return [line for line in status.judges if line.on_hold]


def _trust(status: JudgeStatus) -> str:
    """Say whether those can be trusted whose scores count; empty if nobody's do because all are on hold."""
    counting = [line for line in status.judges if line.state not in ("provisional", "on hold")]
    if not counting:
        return "" if _on_hold(status) else "Only rules have scored so far; their scores are shown and never count."
    accepted = [line for line in counting if line.trusted is False and not line.on_hold]
    unknown = [line for line in counting if line.trusted is None]
    disputed = [name for name, alpha in status.alpha.items() if alpha is not None and alpha < LEAST_AGREEMENT]
    if accepted:
        return f"Take the scores of {_names(accepted)} with care: they drifted from the anchors and were accepted."
    if disputed:
        return f"Take the scores with care: {_names(counting)} disagree on {_listed(disputed)}."
    if unknown:
        return (
            f"Whether {_names(unknown)} can be trusted is not known: that takes {ENOUGH_ANCHORS} anchors in a judge's "
            "batches."
        )
    trusted = [line for line in counting if line.trusted]
    return f"{_names(trusted)} can be trusted: the scores agree with the anchors'." if trusted else ""


def _next_step(status: JudgeStatus, experiment: str) -> NextStep:
    held = _on_hold(status)
    if held:
        judge = held[0].judge
        again = ("--run", judge) if judge in CATALOG else ("--export", "judge.json", "--judge", judge)
        text = f"have {judge} read the rubric and score again, or accept the scores (--accept-drift)"
        return NextStep(text, experiment_command(experiment, "judge", *again))
    if status.pending:
        text = f"judge {counted(status.pending, 'cell')}, about {duration(status.pending * SECONDS_A_JUDGEMENT)}"
        command = experiment_command(experiment, "judge", "--export", "judge.json", "--sample", "1")
        return NextStep(text, command, status.pending)
    if status.judges:
        return NextStep("see what the scores decide", experiment_command(experiment, "compare"), 0)
    return NextStep("nothing waits for a judge; see what was collected", experiment_command(experiment, "compare"), 0)


def _names(lines: Sequence[JudgeLine]) -> str:
    return _listed([line.judge for line in lines])


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
