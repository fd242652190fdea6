"""What a batch's anchors and repeats say about its judge, in plain words, without revealing which items they were."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from tipbench.bench.judge.apply import Applied
from tipbench.bench.judge.drift import ENOUGH_ANCHORS, CriterionDrift, Drift
from tipbench.core.untrusted import printable
from tipbench.server.ui.rubric_markdown import rubric_html
from tipbench.server.views.sheet import Given, Sheet, SheetItem

TEXT_LIMIT = 20_000  # characters of a scenario or candidate; a model can write a megabyte


# A batch for the judging page: texts made printable and cut, the rubric as HTML, what was given so far.


class Level(NamedTuple):
    """A score and its meaning according to the rubric."""

    score: int
    text: Markup


class Choice(NamedTuple):
    """A radio button."""

    value: int
    label: str


class Step(NamedTuple):
    """One decision about an item: a criterion's score, or a flag as 1 or 0."""

    part: str  # "scores" or "flags", as in a Change
    name: str
    title: str
    choices: Sequence[Choice]
    text: Markup
    levels: Sequence[Level]


def steps(sheet: Sheet) -> list[Step]:
    """Return the steps in the order in which the judge goes through them."""
    criteria = [
        Step(
            "scores",
            one.name,
            title(one.name),
            [Choice(score, str(score)) for score in range(one.low, one.high + 1)],
            rubric_html(one.text),
            [Level(score, rubric_html(text)) for score, text in sorted(one.levels.items(), reverse=True)],
        )
        for one in sheet.criteria
    ]
    answers = [Choice(1, "Yes"), Choice(0, "No")]
    flags = [Step("flags", one.name, title(one.name), answers, rubric_html(one.text), []) for one in sheet.flags]
    return criteria + flags


def title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def sheet_data(sheet: Sheet) -> dict[str, Any]:
    """Return the data for the page's script, which inserts texts only as text.

    Characters that would reorder or hide text are made visible here.
    """
    return {
        "steps": [
            {"part": step.part, "name": step.name, "title": step.title, "values": [c.value for c in step.choices]}
            for step in steps(sheet)
        ],
        "items": [_item_data(item) for item in sheet.items],
    }


def given_data(given: Given) -> dict[str, Any]:
    return {"scores": dict(given.scores), "flags": dict(given.flags), "note": given.note}


def unscored(sheet: Sheet) -> list[SheetItem]:
    """Return the items that lack a score, or an answer to a flag that code could not check."""
    return [item for item in sheet.items if not item.given.complete]


def _item_data(item: SheetItem) -> dict[str, Any]:
    return {
        "slot": item.slot,
        "scenario": _text_data(item.scenario),
        "candidate": _text_data(item.candidate),
        "checked": dict(item.checked),
        "given": given_data(item.given),
    }


def _text_data(text: str) -> dict[str, Any]:
    return {"text": printable(text[:TEXT_LIMIT]), "left_out": max(0, len(text) - TEXT_LIMIT)}


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


class JudgingReport(NamedTuple):
    """Everything that the page shows of a batch that was handed in."""

    state: str  # "counts", "in quarantine", "accepted" or "provisional", as in the leaderboard's report
    headline: str
    why: Sequence[str]
    then: str
    basis: str
    criteria: Sequence[CriterionReport]
    more: Sequence[str]


def judging_report(applied: Applied) -> JudgingReport:
    state, headline = _state(applied)
    return JudgingReport(
        state=state,
        headline=headline,
        why=_why(applied),
        then=_then(state),
        basis=_basis(applied),
        criteria=[_criterion(name, found) for name, found in applied.drift.criteria.items()],
        more=_more(applied),
    )


def _state(applied: Applied) -> tuple[str, str]:
    texts = "1 text" if applied.candidates == 1 else f"{applied.candidates} texts"
    if applied.provisional:
        return "provisional", f"The scores of {texts} are kept as provisional ones."
    if applied.accepted:
        return "accepted", f"The scores of {texts} count: the batch was accepted."
    if applied.quarantine:
        return "in quarantine", f"The scores of {texts} are kept, but they do not count."
    return "counts", f"The scores of {texts} count."


def _why(applied: Applied) -> list[str]:
    """Return one sentence per reason, and who accepted the batch, if anybody did."""
    reasons = [_sentence(part) for part in applied.quarantine.split("; ") if part]
    return [*reasons, f"Accepted by {applied.accepted}"] if applied.accepted else reasons


def _sentence(problem: str) -> str:
    name, colon, rest = problem.partition(": ")
    return f"{title(name)}: {rest}." if colon else f"{problem}."


def _then(state: str) -> str:
    if state == "in quarantine":
        return (
            "Read the rubric again where the table says so. Then start the next batch: the texts wait for you once "
            "more. Or whoever runs the bench accepts this batch as it is, with a reason that is kept with it."
        )
    return "Nothing is left to do for this batch. See whether another one waits."


def _basis(applied: Applied) -> str:
    drift = applied.drift
    if not drift.assessable:
        some = "no anchor" if not drift.anchors else "1 anchor" if drift.anchors == 1 else f"{drift.anchors} anchors"
        counts = "" if applied.in_quarantine else " The batch counts all the same."
        return (
            f"Drift is not assessable: {some}, texts whose scores are known, among those you judged, and "
            f"{ENOUGH_ANCHORS} are needed to tell.{_twice(drift)}{counts}"
        )
    borrowed = f", {drift.borrowed} of them in earlier batches" if drift.borrowed else ""
    return (
        "Among the texts were anchors, whose scores are known, and some texts came twice. This compares your scores "
        f"with those of {drift.anchors} anchors{borrowed}, and with your own."
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
        lean = "No leaning can be told"
    else:
        lean = (
            f"You score {abs(off.mean):.2f} points {'milder' if off.mean > 0 else 'stricter'} than the anchors' scores"
        )
    if found.kappa.value is None:
        agree = "agreement can't be told, since all scores are the same"
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
        flags = "1 item" if applied.overruled == 1 else f"{applied.overruled} items"
        remarks.append(f"You saw a flag otherwise than code in {flags}.")
    if applied.replaced:
        texts = "1 text" if applied.replaced == 1 else f"{applied.replaced} texts"
        remarks.append(f"{texts} had other scores by you before, which stay in the history.")
    return remarks
