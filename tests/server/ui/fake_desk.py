"""A judging desk that keeps everything in memory, and sheets to lay on it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from threading import Lock
from typing import Any

from tipbench.bench.judge.apply import Applied
from tipbench.bench.judge.drift import CriterionDrift, Drift
from tipbench.bench.judge.judges.catalog import PERSON
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rubric import sections
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import InvalidInput
from tipbench.server.views.judging import JudgingDesk, OpenBatch, Saved, Waiting
from tipbench.server.views.sheet import Given, Sheet, SheetCriterion, SheetFlag, SheetItem
from tipbench.statistics.drift import consistency, kappa, offset

GIVEN = (1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4)  # on 14 anchors


class NoSuchBatch(InvalidInput):
    """There is none for this judge."""


class FakeDesk(JudgingDesk):
    """For one judge."""

    def __init__(self, *sheets: Sheet, judge: str = "ada", candidates: int = 0) -> None:
        self.sheets = {sheet.batch: sheet for sheet in sheets}
        self.judge = judge
        self.candidates = candidates
        self.changes: list[tuple[str, Mapping[str, Any]]] = []
        self.is_new = False
        self.exported = False  # the open batches are in files
        self.asked: list[str | None] = []
        self.sizes: list[int | None] = []
        self.applied = applied()
        self._lock = Lock()

    def waiting(self, judge: str, wanted: str | None = None) -> Waiting:
        lying = [sheet for sheet in self.sheets.values() if not sheet.handed_in and judge == self.judge]
        return Waiting([_open(sheet, self.exported) for sheet in lying], self.candidates, self.is_new)

    def next_batch(
        self,
        judge: str,
        experiment: str | None = None,
        items: int | None = None,
        excluded: Collection[str] = (),
        kind: str = PERSON,
    ) -> OpenBatch | None:
        self.asked.append(experiment)
        self.sizes.append(items)
        return next(iter(self.waiting(judge).open), None)

    def sheet(self, batch: str, judge: str) -> Sheet:
        if judge != self.judge or batch not in self.sheets:
            raise NoSuchBatch(f"there is no batch {batch} for you")
        return self.sheets[batch]

    def save(self, batch: str, judge: str, slot: str, change: Mapping[str, Any]) -> Saved:
        with self._lock:
            sheet = self.sheet(batch, judge)
            if sheet.handed_in:
                raise InvalidInput("the batch was handed in")
            items = {item.slot: item for item in sheet.items}
            before = items[slot].given
            scores = {**before.scores, **change.get("scores", {})}
            flags = {**before.flags, **change.get("flags", {})}
            told = all(flags[name] is not None or name in items[slot].checked for name in flags)
            complete = told and None not in scores.values()
            given = Given(scores, flags, change.get("note", before.note), complete)
            items[slot] = replace(items[slot], given=given)
            self.sheets[batch] = replace(sheet, items=list(items.values()))
            self.changes.append((slot, change))
            return Saved(given, self.sheets[batch].done, len(items))

    def submit(self, batch: str, judge: str) -> Applied:
        self.sheets[batch] = replace(self.sheet(batch, judge), handed_in=True)
        return self.applied

    def report(self, batch: str, judge: str) -> Applied:
        if not self.sheet(batch, judge).handed_in:
            raise NoSuchBatch(f"batch {batch} was not handed in")
        return self.applied

    def scores(self, batch: str = "b1") -> list[list[int | None]]:
        return [list(item.given.scores.values()) for item in self.sheets[batch].items]


def _open(sheet: Sheet, exported: bool = False) -> OpenBatch:
    return OpenBatch(sheet.batch, len(sheet.items), sheet.done, 0, exported)


def tip_sheet(count: int = 4, texts: Sequence[str] = (), answered: bool = True) -> Sheet:
    """The built-in suite's rubric and anchors; with `answered`, code has checked all flags."""
    suite = tip_suite()
    anchors = suite.anchors
    found = sections(suite.rubric.body)
    introduction = suite.rubric.body.partition("\n## Relevance")[0]
    criteria = [_criterion(name, one.min, one.max, found[name].text) for name, one in suite.rubric.criteria.items()]
    flags = [SheetFlag(name, answered, one.question) for name, one in suite.rubric.flags.items()]
    items = []
    for number in range(count):
        anchor = anchors[number % len(anchors)]
        candidate = texts[number] if number < len(texts) else anchor.candidate
        items.append(made_item(f"slot{number:04}", candidate, criteria, flags, anchor.scenario))
    return Sheet("b1", suite.rubric.name, introduction, criteria, flags, items)


def scale_sheet(low: int, high: int, count: int = 3) -> Sheet:
    criteria = [SheetCriterion(name, low, high, f"About {name}.", {low: "Poor."}) for name in ("clarity", "warmth")]
    items = [made_item(f"slot{number:04}", f"Text {number}", criteria, []) for number in range(count)]
    return Sheet("b1", "long-scale", "", criteria, [], items)


def made_item(
    slot: str, candidate: str, criteria: Sequence[SheetCriterion], flags: Sequence[SheetFlag], scenario: str = "Now: 9"
) -> SheetItem:
    checked = {flag.name: flag.name == "format_ok" for flag in flags if flag.checked_by_code}
    given = Given({one.name: None for one in criteria}, {flag.name: None for flag in flags}, "")
    return SheetItem(slot, scenario, candidate, checked, given)


@cache
def tip_suite() -> Suite:
    return load_suite("tip")


def _criterion(name: str, low: int, high: int, section: str) -> SheetCriterion:
    text, *levels = re.split(r"^### +(-?\d+) *$", section, flags=re.MULTILINE)
    return SheetCriterion(name, low, high, text, {int(n): t for n, t in zip(levels[::2], levels[1::2], strict=True)})


def applied(off: int = 0, anchors: int = 14, **more: Any) -> Applied:
    """What came of a batch whose judge scored every anchor so much too high."""
    reference = [max(1, score - off) for score in GIVEN]
    found = CriterionDrift(
        offset(GIVEN, reference), kappa(GIVEN, reference, 1, 5), consistency([(3, 3), (4, 5)]),
        (f"scores are {off:.2f} higher than the anchors' (allowed: 0.44)",) if off else (),
    )  # fmt: skip
    criteria = {"relevance": found, "tone": found} if anchors >= 12 else {}
    drift = Drift(anchors, 2, criteria)
    known: dict[str, Any] = {
        "judge": "ada", "batch": "b1", "provisional": False, "candidates": 60, "runs": 12, "left": 0, "overruled": 0,
        "changed": True, "replaced": 0, "quarantine": drift.quarantine, "accepted": "", "drift": drift,
    }  # fmt: skip
    return Applied(**(known | more))
