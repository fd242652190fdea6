"""A batch for the judging page: texts made printable and cut, the rubric as HTML, what was given so far."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from tipbench.core.untrusted import printable
from tipbench.server.ui.rubric_markdown import rubric_html
from tipbench.server.views.judging_report import title
from tipbench.server.views.sheet import Given, Sheet, SheetCriterion, SheetItem, first_sentence

TEXT_LIMIT = 20_000  # characters of a scenario or candidate; a model can write a megabyte


class Level(NamedTuple):
    """A score and its meaning according to the rubric."""

    score: int
    text: Markup
    short: Markup  # the first sentence


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
            levels(one),
        )
        for one in sheet.criteria
    ]
    answers = [Choice(1, "Yes"), Choice(0, "No")]
    flags = [Step("flags", one.name, title(one.name), answers, rubric_html(one.text), []) for one in sheet.flags]
    return criteria + flags


def levels(criterion: SheetCriterion) -> list[Level]:
    """Return what the rubric says about each score, the highest first."""
    return [
        Level(score, rubric_html(text), rubric_html(first_sentence(text)))
        for score, text in sorted(criterion.levels.items(), reverse=True)
    ]


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
