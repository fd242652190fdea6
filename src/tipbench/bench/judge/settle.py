"""Combines all applied batches into scores of each run, and writes them to the runs.

The runs' scores are derived from the batches only, so they can be written again at any time: after a kill, after
another judge, after a batch was accepted. Only differences are written.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.bench.records import BY_CODE, BY_RULE, JudgeNote, Verdict
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import (
    AppliedBatch,
    applied_batches,
    batch_fingerprints,
    batch_runs,
    latest_rubric_digest,
    mark_settled,
    unsettled_batches,
)
from tipbench.bench.tracking.descriptions import DESCRIPTION, JudgeScores, cell_summary, with_summary
from tipbench.bench.tracking.interface import Experiment, Names, StoredRun
from tipbench.bench.tracking.runs import (
    CELL,
    CHECKS,
    JUDGED_BY,
    JUDGED_RUBRIC,
    KIND,
    PENDING,
    SUPERSEDED,
    flags_by_code,
    judge_key,
    judge_tag,
    stored_rubric,
)
from tipbench.bench.tracking.store import RunChange, RunStore
from tipbench.core.untrusted import printable

ENOUGH_SHARED = 10  # shared candidates needed to compare two judges' leanings
_MAX_ITERATIONS = 200
_CONVERGED = 1e-10

Item = tuple[str, int]  # run, candidate
ScoresByJudge = Mapping[str, Mapping[Item, Mapping[str, float]]]  # judge → item → name → score
_EPSILON = 1e-12
_log = logging.getLogger(__name__)


# Consensus: one score per candidate from several judges, who may have seen different candidates
#
# The model: a judge's score is the candidate's worth plus the judge's own leaning (leniency or severity). Leanings are
# estimated by least squares, criterion by criterion, from candidates that several judges scored, and subtracted before
# averaging, so that a cell does not gain from having met a lenient judge. Judges who share too few candidates can't be
# put on one scale; their scores are used unadjusted, and the result says so.


@dataclass(frozen=True)
class Consensus:
    """The combined scores of each candidate, and each judge's leaning."""

    scores: Mapping[Item, Mapping[str, float]]
    leanings: Mapping[str, Mapping[str, float]]  # judge → criterion → points above the others
    unlinked_groups: tuple[tuple[str, ...], ...]  # groups of judges that share too little to be compared


def consensus(by_judge: ScoresByJudge, names: Iterable[str]) -> Consensus:
    if len(by_judge) == 1:
        [(judge, items)] = by_judge.items()
        return Consensus(dict(items), {judge: dict.fromkeys(names, 0.0)}, ())
    groups = _groups(by_judge)
    leanings: dict[str, dict[str, float]] = {judge: {} for judge in by_judge}
    for name in names:
        for group in groups:
            for judge, value in _leanings(group, by_judge, name).items():
                leanings[judge][name] = value
    collected: dict[Item, list[Mapping[str, float]]] = {}
    for judge, items in by_judge.items():
        for item, scores in items.items():
            adjusted = {name: score - leanings[judge].get(name, 0.0) for name, score in scores.items()}
            collected.setdefault(item, []).append(adjusted)
    means = {item: {name: fmean(one[name] for one in found) for name in found[0]} for item, found in collected.items()}
    return Consensus(means, leanings, tuple(groups) if len(groups) > 1 else ())


def _groups(by_judge: ScoresByJudge) -> list[tuple[str, ...]]:
    """Group judges that are linked by enough shared candidates, directly or through other judges."""
    groups: list[set[str]] = []
    for judge in sorted(by_judge):
        linked = [group for group in groups if any(_shared(by_judge, judge, other) >= ENOUGH_SHARED for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append({judge}.union(*linked))
    return sorted(tuple(sorted(group)) for group in groups)


def _shared(by_judge: ScoresByJudge, one: str, other: str) -> int:
    return len(by_judge[one].keys() & by_judge[other].keys())


def _leanings(group: tuple[str, ...], by_judge: ScoresByJudge, name: str) -> dict[str, float]:
    """Fit score = worth + leaning by least squares; leanings are relative to the mean of all scores of the group."""
    if len(group) == 1:
        return {group[0]: 0.0}
    by_item: dict[Item, dict[str, float]] = {}
    for judge in group:
        for item, scores in by_judge[judge].items():
            by_item.setdefault(item, {})[judge] = scores[name]
    shared = [scores for scores in by_item.values() if len(scores) > 1]
    leaning = dict.fromkeys(group, 0.0)
    for _ in range(_MAX_ITERATIONS):
        residuals: dict[str, list[float]] = {judge: [] for judge in group}
        for scores in shared:
            worth = fmean(score - leaning[judge] for judge, score in scores.items())
            for judge, score in scores.items():
                residuals[judge].append(score - worth)
        new = {judge: fmean(found) if found else 0.0 for judge, found in residuals.items()}
        change = max(abs(new[judge] - leaning[judge]) for judge in group)
        leaning = new
        if change < _CONVERGED:
            break
    total = sum(len(by_judge[judge]) for judge in group)
    mean = sum(leaning[judge] * len(by_judge[judge]) for judge in group) / total
    return {judge: value - mean for judge, value in leaning.items()}


@dataclass(frozen=True)
class Settled:
    """The result of `settle`."""

    runs: int  # that were changed
    cells: int = 0  # of the experiment
    unlinked_groups: tuple[tuple[str, ...], ...] = ()  # groups of judges whose scores can't be put on one scale
    gone: int = 0  # scored runs that are no longer in MLflow


@dataclass(frozen=True)
class _Opinion:
    """One judge's scores of the candidates, and the batches they come from."""

    judge: str
    provisional: bool
    counted: bool
    scores: Mapping[Item, Mapping[str, float]]
    batches: Mapping[str, str]  # run → the last batch that scored it


def settle(
    store: RunStore, experiment: Experiment, rubric: Rubric, now_ms: int, known: Iterable[AppliedBatch] = ()
) -> Settled:
    """Update the runs to reflect the batches; on a server, repeat if another batch was applied meanwhile.

    The runs hold the scores of a single rubric, that of the last applied batch; other scores stay in their batches.
    Those of the `known` batches are not read again.
    """
    written = 0
    with store.transaction(experiment):  # in a file, nobody writes between reading the runs and writing them
        found = batch_runs(store, experiment)
        while True:
            if latest_rubric_digest(found) not in (None, rubric.digest):
                mark_settled(store, found)
                return Settled(written)
            known = applied_batches(store, found, rubric.digest, known)
            runs = _runs_to_settle(store, experiment, known, rubric)
            changes, agreed, gone = changes_for(runs, known, rubric)
            written += store.extend_runs(experiment, changes, at_ms=now_ms)
            before, found = found, batch_runs(store, experiment)
            if batch_fingerprints(found) == batch_fingerprints(before):
                mark_settled(store, found)
                return Settled(written, len(runs), agreed.unlinked_groups, gone)


def _runs_to_settle(
    store: RunStore, experiment: Experiment, batches: Iterable[AppliedBatch], rubric: Rubric
) -> dict[str, StoredRun]:
    """Return the cells' finished runs by id, with what `changes_for` compares."""
    judges = sorted({one.batch.judge for one in batches})
    tags = (DESCRIPTION, PENDING, JUDGED_RUBRIC, JUDGED_BY, SUPERSEDED, CHECKS)
    of_judges = (f"judge/{judge}/{name}" for judge in judges for name in rubric.score_names)
    compared = Names(
        tags=(*tags, *(judge_key(judge, rubric.digest) for judge in judges)),
        metrics=(*rubric.score_names, *of_judges),
    )
    # By id, not by cell: the judged run gets the scores, even if another run with the same key counts now.
    return {run.run_id: run for run in store.runs(experiment, {KIND: CELL}, compared)}


def finish_applying(store: RunStore, experiment: Experiment, now_ms: int) -> bool:
    """Complete interrupted applies by writing their scores to the runs; return whether there were any.

    Another process that is applying right now writes the same values, so both reach the same result.
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
            "The scores of batch %s were not written to all runs, because the process was interrupted; they are now.",
            printable(run.tags["tipbench.batch"], 80),
        )
    return True


def changes_for(
    runs: Mapping[str, StoredRun], batches: Sequence[AppliedBatch], rubric: Rubric
) -> tuple[Iterator[RunChange], Consensus, int]:
    """Return the changes that make every run reflect the batches, the consensus, and how many judged runs are gone.

    The changes are computed as they are taken, so that some can be written meanwhile.
    """
    opinions = _opinions(batches)
    agreed = consensus({opinion.judge: opinion.scores for opinion in opinions if opinion.counted}, rubric.criteria)
    by_run: dict[str, list[tuple[_Opinion, list[Mapping[str, float]]]]] = {}
    for opinion in opinions:
        for run_id, scores in _grouped(opinion.scores).items():
            by_run.setdefault(run_id, []).append((opinion, scores))
    counting = _grouped({**_by_code(runs, agreed.scores, rubric), **agreed.scores})
    scale = rubric.lowest()["composite"], rubric.highest_composite()

    def changes() -> Iterator[RunChange]:
        for run_id, run in sorted(runs.items()):
            if run_id not in by_run and not _is_marked(run, rubric):
                continue
            tags, metrics = _desired(run, by_run.get(run_id, []), counting.get(run_id, []), rubric, scale)
            change = _difference(run, tags, metrics)
            if change:
                yield change

    return changes(), agreed, len(by_run.keys() - runs.keys())


def _is_marked(run: StoredRun, rubric: Rubric) -> bool:
    """Return whether the run is marked as scored by a judge with this rubric."""
    return run.tags.get(JUDGED_RUBRIC) == rubric.digest and run.tags.get(JUDGED_BY) not in (BY_RULE, BY_CODE)


def _is_scored_by_code(run: StoredRun, rubric: Rubric) -> bool:
    return run.tags.get(JUDGED_RUBRIC) == rubric.digest and run.tags.get(JUDGED_BY) == BY_CODE


def _grouped(scores: Mapping[Item, Mapping[str, float]]) -> dict[str, list[Mapping[str, float]]]:
    """Group the scores by run."""
    found: dict[str, list[Mapping[str, float]]] = {}
    for (run_id, _), one in sorted(scores.items()):
        found.setdefault(run_id, []).append(one)
    return found


def _by_code(runs: Mapping[str, StoredRun], judged: Iterable[Item], rubric: Rubric) -> dict[Item, Mapping[str, float]]:
    """Return what code found about all candidates of the judged runs: it stands for those that no judge has scored."""
    found: dict[Item, Mapping[str, float]] = {}
    for run_id in {run_id for run_id, _ in judged if run_id in runs}:
        for number, flags in enumerate(flags_by_code(runs[run_id].tags.get(CHECKS, ""), rubric.digest)):
            found[run_id, number] = {name: float(value) for name, value in flags.items()}
    return found


def effective_verdicts(batches: Sequence[AppliedBatch]) -> dict[str, dict[Item, Verdict]]:
    """Return each judge's latest verdict on each candidate."""
    return {
        judge: {
            (verdict.slot.run_id, verdict.slot.candidate): verdict
            for batch in own
            for verdict in batch.verdicts
            if verdict.slot.kind == "candidate"
        }
        for judge, own in effective_batches(batches).items()
    }


def effective_batches(batches: Sequence[AppliedBatch]) -> dict[str, list[AppliedBatch]]:
    """Return each judge's batches that count; all of its batches if none counts."""
    by_judge: dict[str, list[AppliedBatch]] = {}
    for batch in batches:
        by_judge.setdefault(batch.batch.judge, []).append(batch)
    return {judge: [one for one in own if one.counted] or own for judge, own in sorted(by_judge.items())}


def _opinions(batches: Sequence[AppliedBatch]) -> list[_Opinion]:
    """Return each judge's latest scores; scores in quarantine are used only if the judge has none that count."""
    found = []
    for judge, own in effective_batches(batches).items():
        scores: dict[Item, Mapping[str, float]] = {}
        scored_in: dict[str, str] = {}
        for batch in own:
            for verdict in batch.verdicts:
                if verdict.slot.kind == "candidate":
                    scores[verdict.slot.run_id, verdict.slot.candidate] = _numbers(verdict)
                    scored_in[verdict.slot.run_id] = batch.batch.id
        last = own[-1]
        found.append(_Opinion(judge, last.batch.provisional, last.counted, scores, scored_in))
    return found


def _numbers(verdict: Verdict) -> dict[str, float]:
    return {**verdict.scores, **{name: float(value) for name, value in verdict.flags.items()}}


def _desired(
    run: StoredRun,
    opinions: Sequence[tuple[_Opinion, Sequence[Mapping[str, float]]]],
    agreed: Sequence[Mapping[str, float]],
    rubric: Rubric,
    scale: tuple[float, float],
) -> tuple[dict[str, str], dict[str, float]]:
    tags: dict[str, str] = {}
    metrics: dict[str, float] = {}
    judges = []
    for opinion, scores in opinions:
        means = _means(scores, rubric)
        judges.append(JudgeScores(opinion.judge, means, opinion.provisional, opinion.counted))
        metrics |= {f"judge/{opinion.judge}/{name}": value for name, value in means.items()}
        batch = opinion.batches[run.run_id]
        key, note = judge_tag(JudgeNote(opinion.judge, rubric.digest, batch, opinion.provisional, opinion.counted))
        tags[key] = note
    counted = [opinion.judge for opinion, _ in opinions if opinion.counted]
    combined = _means(_on_scale(agreed, rubric), rubric) if agreed else {}
    description = with_summary(run.tags.get(DESCRIPTION), cell_summary(rubric.score_names, scale, combined, judges))
    if description is not None:
        tags[DESCRIPTION] = description
    if agreed:
        metrics |= combined
        tags |= {PENDING: "false", JUDGED_RUBRIC: rubric.digest, JUDGED_BY: ", ".join(counted)}
    elif not _is_scored_by_code(run, rubric):
        tags[PENDING] = "true"
        if _is_marked(run, rubric):  # its scores counted before
            tags |= {JUDGED_RUBRIC: "", JUDGED_BY: ""}
    return tags, metrics


def _on_scale(scores: Sequence[Mapping[str, float]], rubric: Rubric) -> list[dict[str, float]]:
    """Clamp scores to their scales: subtracting a leaning may move a score past the end."""
    return [
        {**one, **{name: min(max(one[name], c.min), c.max) for name, c in rubric.criteria.items()}} for one in scores
    ]


def _means(scores: Sequence[Mapping[str, float]], rubric: Rubric) -> dict[str, float]:
    """Average over a run's candidates, including the composite."""
    names = (*rubric.criteria, *rubric.flags)
    if len(scores) == 1:  # as most judges score one candidate of each cell
        means = {name: float(scores[0][name]) for name in names}
    else:
        means = {name: fmean(one[name] for one in scores) for name in names}
    return {**means, "composite": rubric.composite(means, means)}


def _difference(run: StoredRun, tags: Mapping[str, str], metrics: Mapping[str, float]) -> RunChange | None:
    if SUPERSEDED in run.tags:
        tags = {key: value for key, value in tags.items() if key != PENDING}
    new_tags = {key: value for key, value in tags.items() if run.tags.get(key) != value}
    new_metrics = {
        key: value
        for key, value in metrics.items()
        if key not in run.metrics or abs(run.metrics[key] - value) > _EPSILON
    }
    return RunChange(run, new_tags, new_metrics) if new_tags or new_metrics else None
