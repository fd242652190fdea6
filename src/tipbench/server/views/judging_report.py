"""What a batch's anchors and repeats say about its judge, in plain words, without revealing which items they were."""

from collections.abc import Sequence
from typing import NamedTuple

from tipbench.bench.judge.apply import Applied
from tipbench.bench.judge.drift import CriterionDrift, Drift
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.core.text import counted


class CriterionReport(NamedTuple):
    """The figures of one criterion and their meaning."""

    title: str
    offset: str
    offset_span: str
    kappa: str
    kappa_span: str
    twice: str
    meaning: str
    problems: Sequence[str]


class Difference(NamedTuple):
    """Where the judge and the rubric differ."""

    name: str  # of the criterion
    title: str
    text: str


class JudgingReport(NamedTuple):
    """Everything that a judge learns about a batch that was handed in."""

    state: str  # "counts", "in quarantine", "accepted" or "provisional", as in the leaderboard's report
    headline: str  # how the judge compares with the rubric
    outcome: str  # whether the scores count
    then: str  # what to do
    differences: Sequence[Difference]
    why: Sequence[str]
    basis: str
    criteria: Sequence[CriterionReport]
    more: Sequence[str]


def judging_report(applied: Applied) -> JudgingReport:
    """Report on a batch."""
    state = _state(applied)
    differences = [
        Difference(name, title(name), text)
        for name, found in applied.drift.criteria.items()
        if (text := _difference(name, found))
    ]
    return JudgingReport(
        state=state,
        headline=_headline(applied, differences),
        outcome=_outcome(applied, state, bool(differences)),
        then=_then(state, differences),
        differences=differences,
        why=_why(applied),
        basis=_basis(applied),
        criteria=[_criterion(name, found) for name, found in applied.drift.criteria.items()],
        more=_more(applied),
    )


def _state(applied: Applied) -> str:
    if applied.provisional:
        return "provisional"
    if applied.accepted:
        return "accepted"
    return "in quarantine" if applied.quarantine else "counts"


def _difference(name: str, found: CriterionDrift) -> str:
    """Return a sentence on how the judge differs from the rubric; empty if no difference is clear."""
    off, criterion = found.offset, title(name).lower()
    if not off.low <= 0 <= off.high or any(problem.startswith("scores are") for problem in found.problems):
        direction = "higher" if off.mean > 0 else "lower"
        return f"You score {criterion} about {abs(off.mean):.1f} points {direction} than the rubric’s reference texts."
    if not found.problems:
        return ""
    if any(problem.startswith("the same item") for problem in found.problems) and found.repeats:
        return (
            f"You scored the same text twice, and your scores for {criterion} were "
            f"{found.repeats.mean_difference:.1f} points apart on average."
        )
    return f"You and the rubric often disagree on which texts are better in {criterion}."


def _headline(applied: Applied, differences: Sequence[Difference]) -> str:
    if len(differences) == 1:
        return differences[0].text
    if differences:
        *others, last = [one.title.lower() for one in differences]
        return f"You and the rubric differ on {', '.join(others)} and {last}."
    if applied.drift.assessable:
        return "You and the rubric agree."
    if applied.in_quarantine:
        return "Your scores of the same texts are too far apart."
    return "Thank you, your scores are in."


def _outcome(applied: Applied, state: str, differs: bool) -> str:
    texts = counted(applied.candidates, "text")
    if state == "provisional":
        return f"The scores of {texts} are stored as provisional: they are shown and don’t count."
    if state == "accepted":
        return f"The scores of {texts} count: the batch was accepted."
    if state == "in quarantine":
        return f"Nothing is lost: the scores of {texts} are stored. They are on hold and don’t count for now."
    within = "That is within what the rubric allows: the" if differs else "The"
    return f"{within} scores of {texts} count."


def _why(applied: Applied) -> list[str]:
    """Return one sentence per reason, and who accepted the batch, if anybody did."""
    reasons = [_sentence(part) for part in applied.quarantine.split("; ") if part]
    return [*reasons, f"Accepted by {applied.accepted}"] if applied.accepted else reasons


def _sentence(problem: str) -> str:
    name, colon, rest = problem.partition(": ")
    return f"{title(name)}: {rest}." if colon else f"{problem}."


def _then(state: str, differences: Sequence[Difference]) -> str:
    if state == "in quarantine":
        return (
            "Read the rubric’s words again, then judge the next batch: the texts of this one come back later. If you "
            "think that you are right, tell whoever runs the bench; they can let this batch count, with a reason."
        )
    return "Read the rubric’s words below before you go on." if differences and state == "counts" else ""


def _basis(applied: Applied) -> str:
    drift = applied.drift
    if not drift.assessable:
        some = "no reference text" if not drift.anchors else counted(drift.anchors, "reference text")
        counts = "" if applied.in_quarantine else " The batch counts all the same."
        return (
            f"How you compare with the rubric is not known yet: you scored {some}, and {ENOUGH_ANCHORS} are needed. "
            f"Their scores are known; they are mixed in unmarked.{_twice(drift)}{counts}"
        )
    borrowed = f", {drift.borrowed} of them in earlier batches" if drift.borrowed else ""
    return (
        "Some texts were reference texts, whose scores are known, and some came twice. Your scores are compared with "
        f"those of {drift.anchors} reference texts{borrowed}, and with your own."
    )


def _twice(drift: Drift) -> str:
    """Describe how far the judge's repeated scores are apart, for when nothing else can be assessed."""
    if not drift.repeats:
        return ""
    means = ", ".join(f"{title(name)} {found.repeats.mean_difference:.2f}" for name, found in drift.repeats.items())
    count = next(iter(drift.repeats.values())).repeats.n
    return f" You scored {count} {'text' if count == 1 else 'texts'} twice, this far apart on average: {means}."


def _criterion(name: str, found: CriterionDrift) -> CriterionReport:
    off, agreement, repeats = found.offset, found.kappa, found.repeats
    return CriterionReport(
        title=title(name),
        offset=f"{off.mean:+.2f}",
        offset_span=f"{off.low:+.2f} to {off.high:+.2f}",
        kappa="undefined" if agreement.value is None else f"{agreement.value:.2f}",
        kappa_span=f"{agreement.low:.2f} to {agreement.high:.2f}",
        twice="–" if repeats is None else f"{repeats.mean_difference:.2f} apart, {100 * repeats.same:.0f} % the same",
        meaning=_meaning(found),
        problems=found.problems,
    )


def _meaning(found: CriterionDrift) -> str:
    off = found.offset
    if off.low <= 0 <= off.high:
        lean = "No clear offset"
    else:
        lean = f"You score {abs(off.mean):.2f} points {'higher' if off.mean > 0 else 'lower'} than the reference texts"
    if found.kappa.value is None:
        agree = "agreement can't be computed, since all scores are the same"
    elif found.kappa.low <= 0:
        agree = "your order of the texts may agree with theirs by chance alone"
    elif found.kappa.value >= 0.8:
        agree = "you agree closely on which texts are better"
    else:
        agree = "you agree on which texts are better, with exceptions"
    return f"{lean}; {agree}."


def _more(applied: Applied) -> list[str]:
    remarks = []
    if applied.overruled:
        remarks.append(f"You overruled a flag that code had checked in {counted(applied.overruled, 'item')}.")
    if applied.replaced:
        remarks.append(
            f"{counted(applied.replaced, 'text')} had other scores by you before, which stay in the history."
        )
    return remarks


def title(name: str) -> str:
    return name.replace("_", " ").capitalize()
