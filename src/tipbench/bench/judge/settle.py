"""What all applied batches together say about each run, written to the runs.

The runs' scores follow from the batches alone, so that they can be written again at any time: after a kill, after
another judge, after a batch was accepted. Only what differs is written.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.bench.records import BY_RULE, JudgeNote, Verdict
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import (
    AppliedBatch,
    applied_batches,
    batch_marks,
    batch_runs,
    latest_rubric,
    note_settled,
    unsettled_batches,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import CELL, JUDGED_BY, JUDGED_RUBRIC, KIND, PENDING, judge_tag, stored_rubric
from tipbench.bench.tracking.store import RunChange, RunStore
from tipbench.core.untrusted import printable

ENOUGH_SHARED = 10  # candidates, to tell one judge's leaning from another's
_ROUNDS = 200
_SMALL = 1e-10

Item = tuple[str, int]  # run, candidate
Given = Mapping[str, Mapping[Item, Mapping[str, float]]]  # judge → item → name → score
_SAME = 1e-12
_log = logging.getLogger(__name__)


# One score for a candidate from several judges, who may have seen different candidates.
#
# The model: a judge's score is the candidate's worth plus the judge's own leaning. Leanings are estimated, criterion
# by criterion, from candidates that several judges scored, by least squares, and taken off before averaging: so a
# cell is not better off for having met the lenient judge. Judges who share too few candidates can't be put on one
# scale; they are taken as they are, and said to be so.


@dataclass(frozen=True)
class Consensus:
    """The scores of each candidate, and how each judge leans."""

    scores: Mapping[Item, Mapping[str, float]]
    leanings: Mapping[str, Mapping[str, float]]  # judge → name → points above the others
    apart: tuple[tuple[str, ...], ...]  # groups of judges that share too little to be compared


def consensus(given: Given, names: Iterable[str]) -> Consensus:
    groups = _groups(given)
    leanings: dict[str, dict[str, float]] = {judge: {} for judge in given}
    for name in names:
        for group in groups:
            for judge, value in _leanings(group, given, name).items():
                leanings[judge][name] = value
    collected: dict[Item, list[Mapping[str, float]]] = {}
    for judge, items in given.items():
        for item, scores in items.items():
            adjusted = {name: score - leanings[judge].get(name, 0.0) for name, score in scores.items()}
            collected.setdefault(item, []).append(adjusted)
    means = {item: {name: fmean(one[name] for one in found) for name in found[0]} for item, found in collected.items()}
    return Consensus(means, leanings, tuple(groups) if len(groups) > 1 else ())


def _groups(given: Given) -> list[tuple[str, ...]]:
    """Judges that are linked by enough shared candidates, directly or through others."""
    groups: list[set[str]] = []
    for judge in sorted(given):
        linked = [group for group in groups if any(_shared(given, judge, other) >= ENOUGH_SHARED for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append({judge}.union(*linked))
    return sorted(tuple(sorted(group)) for group in groups)


def _shared(given: Given, one: str, other: str) -> int:
    return len(given[one].keys() & given[other].keys())


def _leanings(group: tuple[str, ...], given: Given, name: str) -> dict[str, float]:
    """Least squares of score = worth + leaning; leanings are measured from the mean of all scores of the group."""
    if len(group) == 1:
        return {group[0]: 0.0}
    by_item: dict[Item, dict[str, float]] = {}
    for judge in group:
        for item, scores in given[judge].items():
            by_item.setdefault(item, {})[judge] = scores[name]
    shared = [scores for scores in by_item.values() if len(scores) > 1]
    leaning = dict.fromkeys(group, 0.0)
    for _ in range(_ROUNDS):
        rests: dict[str, list[float]] = {judge: [] for judge in group}
        for scores in shared:
            worth = fmean(score - leaning[judge] for judge, score in scores.items())
            for judge, score in scores.items():
                rests[judge].append(score - worth)
        new = {judge: fmean(found) if found else 0.0 for judge, found in rests.items()}
        moved = max(abs(new[judge] - leaning[judge]) for judge in group)
        leaning = new
        if moved < _SMALL:
            break
    total = sum(len(given[judge]) for judge in group)
    middle = sum(leaning[judge] * len(given[judge]) for judge in group) / total
    return {judge: value - middle for judge, value in leaning.items()}


@dataclass(frozen=True)
class Settled:
    """What was written."""

    runs: int
    apart: tuple[tuple[str, ...], ...] = ()  # judges whose scores can't be put on one scale
    gone: int = 0  # runs that were scored and are not in MLflow any more


@dataclass(frozen=True)
class _Opinion:
    """What one judge says about the candidates, and in which batch it said so."""

    judge: str
    provisional: bool
    counted: bool
    scores: Mapping[Item, Mapping[str, float]]
    batches: Mapping[str, str]  # run → the batch in which it was scored last


def settle(store: RunStore, experiment: Experiment, rubric: Rubric, now_ms: int) -> Settled:
    """Brings the runs in line with the batches; again, when another batch was applied meanwhile.

    The runs carry the scores of one rubric, that of the batch which was applied last; others wait in their batches.
    """
    written = 0
    found = batch_runs(store, experiment)
    while True:
        if latest_rubric(found) not in (None, rubric.digest):
            note_settled(store, found)
            return Settled(written)
        batches = applied_batches(store, found, rubric.digest)
        # By id, not by cell: the run that was judged gets the scores, even if another with its key counts by now.
        runs = {run.run_id: run for run in store.runs(experiment, {KIND: CELL})}
        changes, agreed, gone = changes_for(runs, batches, rubric)
        store.extend_runs(changes, at_ms=now_ms)
        written += len(changes)
        before, found = found, batch_runs(store, experiment)
        if batch_marks(found) == batch_marks(before):
            note_settled(store, found)
            return Settled(written, agreed.apart, gone)


def finish_applying(store: RunStore, experiment: Experiment, now_ms: int) -> bool:
    """Bring scores to their runs where an apply was cut off before it had; whether there were any.

    Another process that is applying right now writes the same, so both come to the same end.
    """
    left = unsettled_batches(store, experiment)
    if not left:
        return False
    with store.session():
        for run in {run.tags["tipbench.rubric_digest"]: run for run in left}.values():
            rubric = parse_rubric(stored_rubric(store, run), f"rubric.md of batch run {run.run_id}")
            settle(store, experiment, rubric, now_ms)
    for run in left:
        _log.warning(
            "The scores of batch %s had not reached all runs, because writing them was cut off; now they have.",
            printable(run.tags["tipbench.batch"], 80),
        )
    return True


def changes_for(
    runs: Mapping[str, StoredRun], batches: Sequence[AppliedBatch], rubric: Rubric
) -> tuple[list[RunChange], Consensus, int]:
    """What has to be written so that every run says what the batches say, and how many judged runs are gone."""
    opinions = _opinions(batches)
    agreed = consensus({opinion.judge: opinion.scores for opinion in opinions if opinion.counted}, rubric.criteria)
    by_run: dict[str, list[tuple[_Opinion, list[Mapping[str, float]]]]] = {}
    for opinion in opinions:
        for run_id, scores in _grouped(opinion.scores).items():
            by_run.setdefault(run_id, []).append((opinion, scores))
    counting = _grouped(agreed.scores)
    changes = []
    for run_id, run in sorted(runs.items()):
        if run_id not in by_run and not _is_marked(run, rubric):
            continue
        tags, metrics = _desired(run, by_run.get(run_id, []), counting.get(run_id, []), rubric)
        change = _difference(run, tags, metrics)
        if change:
            changes.append(change)
    return changes, agreed, len(by_run.keys() - runs.keys())


def _is_marked(run: StoredRun, rubric: Rubric) -> bool:
    """Whether the run says that a judge scored it by this rubric."""
    return run.tags.get(JUDGED_RUBRIC) == rubric.digest and run.tags.get(JUDGED_BY) != BY_RULE


def _grouped(scores: Mapping[Item, Mapping[str, float]]) -> dict[str, list[Mapping[str, float]]]:
    """By run."""
    found: dict[str, list[Mapping[str, float]]] = {}
    for (run_id, _), one in sorted(scores.items()):
        found.setdefault(run_id, []).append(one)
    return found


def effective_verdicts(batches: Sequence[AppliedBatch]) -> dict[str, dict[Item, Verdict]]:
    """What each judge says of each candidate, the latest where it said several things."""
    return {
        judge: {
            (verdict.slot.run_id, verdict.slot.candidate): verdict
            for batch in standing
            for verdict in batch.verdicts
            if verdict.slot.kind == "candidate"
        }
        for judge, standing in _standing(batches).items()
    }


def _standing(batches: Sequence[AppliedBatch]) -> dict[str, list[AppliedBatch]]:
    """Each judge's batches that count; where none does, all of them."""
    by_judge: dict[str, list[AppliedBatch]] = {}
    for batch in batches:
        by_judge.setdefault(batch.batch.judge, []).append(batch)
    return {judge: [one for one in own if one.counted] or own for judge, own in sorted(by_judge.items())}


def _opinions(batches: Sequence[AppliedBatch]) -> list[_Opinion]:
    """Each judge's latest scores; scores in quarantine stand only where the judge has none that count."""
    found = []
    for judge, standing in _standing(batches).items():
        scores: dict[Item, Mapping[str, float]] = {}
        said_in: dict[str, str] = {}
        for batch in standing:
            for verdict in batch.verdicts:
                if verdict.slot.kind == "candidate":
                    scores[verdict.slot.run_id, verdict.slot.candidate] = _numbers(verdict)
                    said_in[verdict.slot.run_id] = batch.batch.id
        last = standing[-1]
        found.append(_Opinion(judge, last.batch.provisional, last.counted, scores, said_in))
    return found


def _numbers(verdict: Verdict) -> dict[str, float]:
    return {**verdict.scores, **{name: float(value) for name, value in verdict.flags.items()}}


def _desired(
    run: StoredRun,
    opinions: Sequence[tuple[_Opinion, Sequence[Mapping[str, float]]]],
    agreed: Sequence[Mapping[str, float]],
    rubric: Rubric,
) -> tuple[dict[str, str], dict[str, float]]:
    tags: dict[str, str] = {}
    metrics: dict[str, float] = {}
    for opinion, scores in opinions:
        metrics |= {f"judge/{opinion.judge}/{name}": value for name, value in _means(scores, rubric).items()}
        batch = opinion.batches[run.run_id]
        tags |= judge_tag(JudgeNote(opinion.judge, rubric.digest, batch, opinion.provisional, opinion.counted))
    counted = [opinion.judge for opinion, _ in opinions if opinion.counted]
    if agreed:
        metrics |= _means(_on_scale(agreed, rubric), rubric)
        tags |= {PENDING: "false", JUDGED_RUBRIC: rubric.digest, JUDGED_BY: ", ".join(counted)}
    else:
        tags[PENDING] = "true"
        if _is_marked(run, rubric):  # it counted before
            tags |= {JUDGED_RUBRIC: "", JUDGED_BY: ""}
    return tags, metrics


def _on_scale(scores: Sequence[Mapping[str, float]], rubric: Rubric) -> list[dict[str, float]]:
    """With leanings taken off, a score may come to lie beyond its scale's end."""
    return [
        {**one, **{name: min(max(one[name], c.min), c.max) for name, c in rubric.criteria.items()}} for one in scores
    ]


def _means(scores: Sequence[Mapping[str, float]], rubric: Rubric) -> dict[str, float]:
    """Over a run's candidates."""
    names = (*rubric.criteria, *rubric.flags)
    means = {name: fmean(one[name] for one in scores) for name in names}
    return {**means, "composite": rubric.composite(means, means)}


def _difference(run: StoredRun, tags: Mapping[str, str], metrics: Mapping[str, float]) -> RunChange | None:
    if "tipbench.superseded" in run.tags:
        tags = {key: value for key, value in tags.items() if key != PENDING}
    new_tags = {key: value for key, value in tags.items() if run.tags.get(key) != value}
    new_metrics = {
        key: value for key, value in metrics.items() if key not in run.metrics or abs(run.metrics[key] - value) > _SAME
    }
    return RunChange(run, new_tags, new_metrics) if new_tags or new_metrics else None
