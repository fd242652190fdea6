"""Descriptions of runs and experiments, which MLflow shows on their pages as Markdown.

A description begins with a summary: the scores of a cell, the state of a batch, the answer of an experiment. It is
replaced when they change. A comment after it, which MLflow's pages don't show, holds its length and digest, so that
only a summary that nobody edited is replaced; whatever else is in the description stays. What models and judges wrote
is escaped, so that it can't form links, images or markup.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import NamedTuple

from tipbench.bench.records import Answer, Batch, Failure, Outcome, RubricText, Verdict
from tipbench.core.identity import SHORT, text_digest
from tipbench.core.text import counted, utc_day
from tipbench.core.untrusted import markdown_text

DESCRIPTION = "mlflow.note.content"
MAX_LENGTH = 5_000  # characters; MLflow truncates at 8,000, old servers at 5,000
_MAX_SUMMARY = 1_300
_MAX_SCENARIO = 1_200
_MAX_CANDIDATES = 1_700
_SHORTEST = 60  # characters of a text that is worth showing
_GAP = "&emsp;"  # MLflow's pages put no space between a table's columns
_MAX_NAMED = 4  # judges in a sentence
_MARKER = re.compile(rf"<!-- tipbench updates the ([0-9]{{1,5}}) characters above \(([0-9a-f]{{{SHORT}}})\)[^>]*-->")


class _Summary(NamedTuple):
    start: int
    text: str
    marker_end: int


def summary_of(description: str) -> str | None:
    """Return the summary; None if there is none, or somebody edited it."""
    found = _find_summary(description)
    return found.text if found else None


def with_summary(description: str | None, summary: str) -> str | None:
    """Return the description with this summary in place of its current one; None if it has to stay as it is.

    That is if somebody edited or removed the summary, or the result would be too long. Without a description, as on
    runs of earlier versions, the result holds the summary alone.
    """
    changed = _marked(summary)
    if description is not None:
        found = _find_summary(description)
        if found is None:
            return None
        changed = description[: found.start] + changed + description[found.marker_end :]
    return changed if len(changed) <= MAX_LENGTH else None


def _find_summary(description: str) -> _Summary | None:
    for marker in _MARKER.finditer(description):
        end = marker.start() - 2  # there is an empty line in between
        start = end - int(marker[1])
        if start >= 0 and text_digest(description[start:end])[:SHORT] == marker[2]:
            return _Summary(start, description[start:end], marker.end())
    return None


@lru_cache(1_000)  # many cells have the same one
def _marked(summary: str) -> str:
    digest = text_digest(summary)[:SHORT]
    return (
        f"{summary}\n\n<!-- tipbench updates the {len(summary)} characters above ({digest}), unless you edit them; "
        "write below -->"
    )


# A cell


def cell_description(outcome: Outcome, rubric: RubricText) -> str:
    """Describe a cell that was just collected: its state, the candidates and the scenario."""
    scenario = outcome.cell.scenario
    candidates: list[str] = []
    if isinstance(outcome, Failure):
        summary = f"**Failed**, so it has no scores: {_cut(outcome.reason, 600)}"
    elif not outcome.candidates:
        summary = (
            f"**No usable text**: no candidate could be read from the answer, so it scores the rubric's minimum, "
            f"{rubric.lowest['composite']:.2f}. raw.txt has the answer."
        )
    else:
        summary = f"**Not judged yet**: {counted(len(outcome.candidates), 'candidate')}."
        if outcome.scores:
            summary = code_summary(outcome.scores, len(outcome.candidates))
        candidates = ["**Candidates**", _numbered(outcome)]
    return "\n\n".join([_marked(summary), *candidates, _about_scenario(scenario.id, scenario.text)])


@lru_cache(256)  # each model and prompt has the same ones
def _about_scenario(name: str, text: str) -> str:
    return f"**Scenario {_cut(name, 100)}**\n\n{_quoted(text, _MAX_SCENARIO)}"


def code_summary(scores: Mapping[str, float], candidates: int) -> str:
    """Summarize a cell that code has scored: the composite, and in how many candidates each flag is true."""
    shares = [f"{markdown_text(name)} {share:.0%}" for name, share in scores.items() if name != "composite"]
    return (
        f"**Composite {scores['composite']:.2f}**, scored by code, no judge has read it: "
        f"{counted(candidates, 'candidate')}; {', '.join(shares)}."
    )


def _numbered(answer: Answer) -> str:
    """List the candidates; those that don't fit are shortened, and left out where hardly anything would remain."""
    lines: list[str] = []
    room = _MAX_CANDIDATES
    for number, text in enumerate(answer.candidates, start=1):
        left = len(answer.candidates) - number + 1
        if room < _SHORTEST:
            return "\n".join([*lines, "", f"candidates.json has {left} more."])
        lines.append(f"{number}. {_cut(text, max(room // left, _SHORTEST))}")
        room -= len(lines[-1]) + 1
    return "\n".join(lines)


def _quoted(text: str, room: int) -> str:
    """Quote a text line by line, as far as it fits."""
    lines: list[str] = []
    given = text.strip().splitlines()
    for number, line in enumerate(given):
        if room < _SHORTEST:
            lines.append(f"> … ({counted(len(given) - number, 'more line')})")
            break
        lines.append(f"> {_cut(line, room)}".rstrip())
        room -= len(lines[-1]) + 1
    return "\n".join(lines)


def _cut(text: str, room: int) -> str:
    """Escape a text and shorten it to about this many characters, saying how many are missing."""
    line = " ".join(text.split())
    shown = len(line)
    while len(escaped := markdown_text(line[:shown])) > room:
        shown = min(room, shown * 3 // 4)
    return escaped if shown == len(line) else f"{escaped}… ({len(line) - shown:,} more characters)"


@dataclass(frozen=True)
class JudgeScores:
    """A judge's mean scores of a cell's candidates."""

    judge: str
    scores: Mapping[str, float]
    provisional: bool
    counted: bool


def cell_summary(
    names: Sequence[str], scale: tuple[float, float], agreed: Mapping[str, float], judges: Sequence[JudgeScores]
) -> str:
    """Summarize a cell's scores, which have these names, the composite last; `agreed` is empty while none count."""
    counting = [one.judge for one in judges if one.counted]
    if not judges:
        return "**Not judged yet.**"
    lead = "**Not judged yet**: these scores don't count."
    if agreed:
        composite = f"**Composite {agreed['composite']:.2f}** on a scale from {scale[0]:g} to {scale[1]:g}"
        lead = f"{composite}, judged by {_named(tuple(counting))}."
    rows = [("all that count", agreed)] if len(counting) > 1 else []
    rows += [(_judge_label(one), one.scores) for one in judges]
    lines = [lead, "", *_table_head(tuple(names))]
    shown = len(lines)
    for label, scores in rows:
        lines.append(f"| {label} | {' | '.join(f'{scores[name]:.2f}' for name in names)} |")
        if sum(map(len, lines)) > _MAX_SUMMARY:
            fitting = lines[:-1] if len(lines) > shown + 1 else [lead]
            return "\n".join([*fitting, "", "The other scores are among the metrics."])
    return "\n".join(lines)


# The same for thousands of cells.


@lru_cache(maxsize=16)
def _table_head(names: tuple[str, ...]) -> tuple[str, str]:
    head = "".join(f" {markdown_text(name)}{_GAP} |" for name in names)
    return f"| judge |{head}", f"|---|{'---|' * len(names)}"


def _judge_label(one: JudgeScores) -> str:
    note = "" if one.counted else " (provisional)" if one.provisional else " (on hold)"
    return f"{_named((one.judge,))}{note}"


@lru_cache(maxsize=256)
def _named(judges: tuple[str, ...]) -> str:
    shown = list(judges[:_MAX_NAMED])
    if len(judges) > _MAX_NAMED:
        shown.append(counted(len(judges) - _MAX_NAMED, "other"))
    return markdown_text(" and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown))


# A batch


def batch_name(batch: Batch) -> str:
    """Name a batch's run, beginning with what distinguishes it from others."""
    return f"{batch.judge}: batch of {counted(_candidates(batch), 'candidate')}, {utc_day(batch.created_ms)}"


def batch_description(batch: Batch, rubric_name: str) -> str:
    """Describe a batch that was just exported."""
    cells = len({slot.run_id for slot in batch.slots if slot.run_id})
    summary = (
        f"**Not judged yet**: {counted(_candidates(batch), 'candidate')} of {counted(cells, 'cell')} "
        f"for {markdown_text(batch.judge)}."
    )
    about = (
        f"Batch {markdown_text(batch.id)}, to be scored by rubric {markdown_text(rubric_name)}. The candidates are "
        "mixed with anchors and repeats; manifest.json says which item is which."
    )
    return f"{_marked(summary)}\n\n{about}"


def batch_summary(
    judge: str, verdicts: Sequence[Verdict], applied_ms: int, provisional: bool, drift: tuple[str, str]
) -> str:
    """Summarize an applied batch; `drift` is why it would not count, and why somebody accepted it all the same."""
    quarantine, accepted = (_cut(text, 500).rstrip(".") for text in drift)
    if provisional:
        counts = "The scores are provisional: they come from simple rules and don't count."
    elif quarantine and not accepted:
        counts = (
            "The scores are **on hold**, so they don't count; 'tipbench judge --status' has the figures.\n\n"
            f"Why: {quarantine}."
        )
    elif accepted:
        counts = f"The scores count, though the judge drifted; accepted: {accepted}."
    else:
        counts = "The scores count."
    composites = [verdict.composite for verdict in verdicts if verdict.slot.kind == "candidate"]
    mean = f", mean composite {fmean(composites):.2f}" if composites else ""
    scored = counted(len(composites), "candidate")
    return f"**Judged by {markdown_text(judge)}** on {utc_day(applied_ms)}: {scored}{mean}. {counts}"


def _candidates(batch: Batch) -> int:
    return sum(slot.kind == "candidate" for slot in batch.slots)
