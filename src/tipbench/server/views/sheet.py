"""A batch as the judging page shows it: the rubric by criterion, the items, and what was given so far."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.suites.rubric import Rubric, sections
from tipbench.core.errors import Problems
from tipbench.core.untrusted import shown

MAX_NOTE_LENGTH = 4_000
_PARTS = ("scores", "flags", "note")
Fields = Mapping[tuple[str, str], Any]  # (part, name) → value, as in drafts
NO_FIELDS: Fields = {}


class Change(BaseModel):
    """Of one item; only what was changed is in it, and null takes back what was given."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scores: dict[str, int | None] = Field(default_factory=dict, max_length=20)
    flags: dict[str, bool | None] = Field(default_factory=dict, max_length=20)
    note: str = Field("", max_length=MAX_NOTE_LENGTH)


@dataclass(frozen=True)
class Given:
    """What a judge has given an item so far; None: not yet (of a flag: as code checked it)."""

    scores: Mapping[str, int | None]
    flags: Mapping[str, bool | None]
    note: str
    complete: bool = False  # nothing is missing for handing it in


@dataclass(frozen=True)
class SheetItem:
    slot: str
    scenario: str  # untrusted, like everything that is shown to a judge
    candidate: str
    checked: Mapping[str, bool]  # the flags that code could check
    given: Given


@dataclass(frozen=True)
class SheetCriterion:
    """A criterion with the rubric's text for it: Markdown, by us or by the suite's author."""

    name: str
    low: int
    high: int
    text: str  # its question, and the part of its section before the levels
    levels: Mapping[int, str]  # what each score means


@dataclass(frozen=True)
class SheetFlag:
    name: str
    checked_by_code: bool
    text: str


@dataclass(frozen=True)
class Sheet:
    """Everything that the judging page shows of a batch."""

    batch: str
    rubric: str
    introduction: str  # the rubric's text apart from its criteria: Markdown
    criteria: Sequence[SheetCriterion]
    flags: Sequence[SheetFlag]
    items: Sequence[SheetItem]
    handed_in: bool = False  # it can't be changed any more

    @property
    def done(self) -> int:
        return sum(item.given.complete for item in self.items)


def make_sheet(file: Mapping[str, Any], rubric: Rubric, drafts: Mapping[str, Fields], handed_in: bool) -> Sheet:
    found = sections(rubric.body)
    criteria = [_criterion(name, rubric, found) for name in rubric.criteria]
    own = {name.replace("_", " ") for name in rubric.criteria}
    before = re.split(r"^## ", rubric.body, maxsplit=1, flags=re.MULTILINE)[0]
    others = [f"## {title.capitalize()}\n{one.text}" for title, one in found.items() if title not in own]
    return Sheet(
        batch=file["batch"],
        rubric=rubric.name,
        introduction="\n".join([before, *others]),
        criteria=criteria,
        flags=[SheetFlag(name, bool(flag.check), flag.question) for name, flag in rubric.flags.items()],
        items=[_item(item, rubric, drafts.get(item["slot"], NO_FIELDS)) for item in file["items"]],
        handed_in=handed_in,
    )


def _criterion(name: str, rubric: Rubric, found: Mapping[str, Any]) -> SheetCriterion:
    criterion = rubric.criteria[name]
    section = found.get(name.replace("_", " "))
    before, *parts = re.split(r"^### +(-?\d+) *$", section.text if section else "", flags=re.MULTILINE)
    levels = {int(level): text.strip() for level, text in zip(parts[::2], parts[1::2], strict=True)}
    text = f"**{criterion.question}**\n\n{before.strip()}" if criterion.question else before.strip()
    return SheetCriterion(name, criterion.min, criterion.max, text, levels)


def first_sentence(text: str) -> str:
    """Return the first sentence of a Markdown text, or its first paragraph if that is shorter."""
    paragraph = text.strip().partition("\n\n")[0]
    return re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0]


def _item(item: Mapping[str, Any], rubric: Rubric, fields: Fields) -> SheetItem:
    checked = dict(item["checked"])
    return SheetItem(item["slot"], item["scenario"], item["candidate"], checked, given(rubric, checked, fields))


def given(rubric: Rubric, checked: Mapping[str, bool], fields: Fields) -> Given:
    scores = {name: fields.get(("scores", name)) for name in rubric.criteria}
    flags = {name: fields.get(("flags", name)) for name in rubric.flags}
    flags_answered = all(flags[name] is not None or name in checked for name in rubric.flags)
    complete = flags_answered and all(score is not None for score in scores.values())
    return Given(scores, flags, fields.get(("note", "")) or "", complete)


def fill_in(file: Mapping[str, Any], rubric: Rubric, drafts: Mapping[str, Fields]) -> dict[str, Any]:
    """Return the judge file with what was given so far filled in."""
    items = []
    for item in file["items"]:
        found = given(rubric, item["checked"], drafts.get(item["slot"], NO_FIELDS))
        items.append({**item, "scores": dict(found.scores), "flags": dict(found.flags), "note": found.note})
    return {**file, "items": items}


def read_change(change: Mapping[str, Any], rubric: Rubric) -> dict[tuple[str, str], Any]:
    """Return the fields of a change; raise Problems, listing every one."""
    problems = [f"{shown(key)}: unknown field; use {', '.join(_PARTS)}" for key in change if key not in _PARTS]
    fields: dict[tuple[str, str], Any] = {}
    for part in ("scores", "flags"):
        values = change.get(part, {})
        if not isinstance(values, Mapping):
            problems.append(f"{part}: must be an object")
            continue
        for name, value in values.items():
            problem = _score_problem(name, value, rubric) if part == "scores" else _flag_problem(name, value, rubric)
            if problem:
                problems.append(f"{part}.{shown(name)}: {problem}")
            fields[part, name] = value
    if "note" in change:
        note = change["note"]
        if not isinstance(note, str) or len(note) > MAX_NOTE_LENGTH:
            problems.append(f"note: must be text of at most {MAX_NOTE_LENGTH} characters")
        fields["note", ""] = note
    if problems:
        raise Problems("the change can't be stored:", problems)
    return fields


def _score_problem(name: str, value: Any, rubric: Rubric) -> str:
    criterion = rubric.criteria.get(name)
    if criterion is None:
        return "is not a criterion"
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{shown(value)} is not a whole number"
    return "" if criterion.min <= value <= criterion.max else f"{value} is outside {criterion.min}–{criterion.max}"


def _flag_problem(name: str, value: Any, rubric: Rubric) -> str:
    if name not in rubric.flags:
        return "is not a flag"
    return "" if value is None or isinstance(value, bool) else f"{shown(value)} is neither true, false nor null"
