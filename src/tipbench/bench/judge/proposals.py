"""Anchors proposed from candidates that judges agreed on, for a person to accept."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from tipbench.bench.judge.sample import Redactor
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.records import LEAST_AGREEMENT, Verdict
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS, AnchorEntry, is_writable
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.batches import applied_batches, batch_runs, latest_rubric_digest
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import stored_candidates, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput
from tipbench.core.identity import text_digest
from tipbench.core.text import counted
from tipbench.statistics.agreement import krippendorff_alpha

_MOST = 40  # proposals at a time: more than anybody reads in one sitting
_LARGEST_SHARE = 0.6  # of all anchors that may have the same score on a criterion
_FREE = 3  # anchors that may have it however few there are
_LONGEST_ID = 50


@dataclass(frozen=True)
class Proposals:
    """Anchors to accept, and how they were found."""

    suite: Suite
    experiment: str
    entries: tuple[AnchorEntry, ...]
    usable: tuple[AnchorEntry, ...]  # these, and others that could be accepted as well
    judges: tuple[str, ...]  # whose scores count
    shared: int  # candidates that at least two of them scored
    agreed: int  # of these, candidates on which all who scored them agree on every criterion
    alpha: Mapping[str, float | None]  # the judges' agreement beyond chance, by criterion

    @property
    def says(self) -> str:
        """What was found, and what to make of it."""
        if len(self.judges) < 2:
            who = f"only {self.judges[0]}'s do" if self.judges else "nobody's do"
            return (
                f"Anchors take two judges whose scores count in '{self.experiment}', and {who}; have another one judge."
            )
        found = (
            f"Two judges or more scored {counted(self.shared, 'candidate')} of '{self.experiment}' and agree on "
            f"{self.agreed}: {counted(len(self.entries), 'new anchor')} proposed."
        )
        return " ".join([found, *self._warnings()])

    def _warnings(self) -> Iterable[str]:
        low = [name for name, alpha in self.alpha.items() if alpha is not None and alpha < LEAST_AGREEMENT]
        if low:
            yield f"On {', '.join(low)} they agree hardly more than by chance: read these anchors with care."
        left_out = len(self.usable) - len(self.entries)
        if left_out:
            yield f"{left_out} more were left out: too many anchors would have the same scores."
        anchors = len(self.entries) + len(self.suite.anchors)
        if anchors < ENOUGH_ANCHORS:
            yield f"It takes {ENOUGH_ANCHORS} to check a judge: have both score more, bad answers too."


def propose_anchors(store: RunStore, experiment: Experiment, suite: Suite, tolerance: int = 0) -> Proposals:
    """Propose the candidates that all judges who scored them agree on, spread over the scales.

    Judges agree if their scores are at most `tolerance` points apart on every criterion; the reference is then the
    lower one of the middle scores. Raises InvalidInput if the experiment is not of this suite and rubric.
    """
    if tolerance < 0:
        raise InvalidInput(f"the tolerance must be 0 points or more (given: {tolerance})")
    if experiment.tags.get("tipbench.suite") != suite.name:
        raise InvalidInput(f"experiment '{experiment.name}' is not of suite '{suite.name}'; name one of this suite")
    runs = batch_runs(store, experiment)
    if latest_rubric_digest(runs) not in (None, suite.rubric.digest):
        raise InvalidInput(
            f"experiment '{experiment.name}' was judged by another rubric than suite '{suite.name}' has now; judge it "
            "again by this one"
        )
    batches = [one for one in applied_batches(store, runs, suite.rubric.digest) if one.counted]
    verdicts = effective_verdicts(batches)
    by_item: dict[tuple[str, int], dict[str, Verdict]] = {}
    for judge, own in verdicts.items():
        for item, verdict in own.items():
            by_item.setdefault(item, {})[judge] = verdict
    shared = {item: given for item, given in sorted(by_item.items()) if len(given) > 1}
    agreed = {item: given for item, given in shared.items() if _agree(given.values(), tolerance)}
    usable = _entries(store, experiment, suite, agreed)
    chosen = _spread_out(usable, suite)
    return Proposals(
        suite=suite,
        experiment=experiment.name,
        entries=tuple(chosen),
        usable=tuple(usable),
        judges=tuple(sorted(verdicts)),
        shared=len(shared),
        agreed=len(agreed),
        alpha={name: _alpha(verdicts, shared, name) for name in suite.rubric.criteria} if shared else {},
    )


def _agree(given: Iterable[Verdict], tolerance: int) -> bool:
    scores = [verdict.scores for verdict in given]
    return all(max(one[name] for one in scores) - min(one[name] for one in scores) <= tolerance for name in scores[0])


def _alpha(
    verdicts: Mapping[str, Mapping[tuple[str, int], Verdict]], items: Iterable[tuple[str, int]], name: str
) -> float | None:
    order = list(items)
    return krippendorff_alpha(
        [[own[item].scores[name] if item in own else None for item in order] for own in verdicts.values()]
    )


def _entries(
    store: RunStore, experiment: Experiment, suite: Suite, agreed: Mapping[tuple[str, int], Mapping[str, Verdict]]
) -> list[AnchorEntry]:
    """Return the candidates as anchors, each text once: those that the suite can use and does not have yet."""
    runs = stored_runs(store, experiment)
    redactor = Redactor({run.params["model"] for run in runs}, {run.params["prompt"] for run in runs})
    scenarios = {scenario.id: scenario.text for scenario in suite.scenarios}
    seen = {_normalized(anchor.candidate) for anchor in suite.anchors}
    numbers: dict[str, list[int]] = {}
    for run_id, number in agreed:
        numbers.setdefault(run_id, []).append(number)
    found = []
    for run in runs:
        scenario = run.params["scenario"]
        if run.run_id not in numbers or scenario not in scenarios:
            continue
        stored = stored_candidates(store, run)
        for number in numbers[run.run_id] if stored.scenario == scenarios[scenario] else ():
            text = stored.texts[number]
            entry = _entry(scenario, text, agreed[run.run_id, number], experiment.name)
            is_usable = redactor.redact(text) == text and text not in suite.rubric.text and is_writable(entry)
            if is_usable and _normalized(text) not in seen:
                seen.add(_normalized(text))
                found.append(entry)
    return found


def _entry(scenario: str, text: str, given: Mapping[str, Verdict], experiment: str) -> AnchorEntry:
    judges = sorted(given)
    scores = {name: median_low(one.scores[name] for one in given.values()) for name in given[judges[0]].scores}
    different = [name for name in scores if len({one.scores[name] for one in given.values()}) > 1]
    detail = "; ".join(f"{name}: {', '.join(f'{j} {given[j].scores[name]}' for j in judges)}" for name in different)
    reason = f"{' and '.join(judges)} scored it so, each on their own, in {experiment}"
    return AnchorEntry(
        id=f"{scenario[:_LONGEST_ID]}-{text_digest(text)[:8]}",
        scenario=scenario,
        candidate=text,
        scores=scores,
        reason=f"{reason} ({detail})" if detail else reason,
        by=judges,
    )


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def _spread_out(entries: Sequence[AnchorEntry], suite: Suite) -> list[AnchorEntry]:
    """Choose entries so that no score is that of most anchors: each time one whose scores are rare so far."""
    levels = {name: Counter(anchor.scores[name] for anchor in suite.anchors) for name in suite.rubric.criteria}
    scenarios = Counter(anchor.scenario_id for anchor in suite.anchors)
    total = len(suite.anchors)
    left, chosen = list(entries), list[AnchorEntry]()

    def fits(entry: AnchorEntry) -> bool:
        most = max(_FREE, _LARGEST_SHARE * (total + 1))
        return all(levels[name][score] < most for name, score in entry.scores.items())

    def frequency(entry: AnchorEntry) -> tuple[int, int, str]:
        return sum(levels[name][score] for name, score in entry.scores.items()), scenarios[entry.scenario], entry.id

    while len(chosen) < _MOST and (fitting := [entry for entry in left if fits(entry)]):
        entry = min(fitting, key=frequency)
        left.remove(entry)
        chosen.append(entry)
        total += 1
        scenarios[entry.scenario] += 1
        for name, score in entry.scores.items():
            levels[name][score] += 1
    return chosen
