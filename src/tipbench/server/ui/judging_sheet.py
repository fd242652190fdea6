"""A batch as the judging page gets it: texts made visible and cut, the rubric as HTML, what is given so far."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from tipbench.core.untrusted import printable
from tipbench.server.ui.rubric_markdown import rubric_html
from tipbench.server.views.sheet import Given, Sheet, SheetItem

TEXT_LIMIT = 20_000  # characters of a scenario or candidate; a model can write a megabyte


class Level(NamedTuple):
    """A score with what the rubric says it means."""

    score: int
    text: Markup


class Choice(NamedTuple):
    """A radio button."""

    value: int
    label: str


class Step(NamedTuple):
    """Something that a judge decides about an item: a criterion's score, or a flag as 1 or 0."""

    part: str  # "scores" or "flags", as in a change
    name: str
    title: str
    choices: Sequence[Choice]
    text: Markup
    levels: Sequence[Level]


def steps(sheet: Sheet) -> list[Step]:
    """In the order in which they are gone through."""
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
    """What the script needs. Texts go into the page as text alone; here they lose what would reorder or hide them."""
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
    """Items that lack a score, or an answer to a flag that code could not check."""
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
