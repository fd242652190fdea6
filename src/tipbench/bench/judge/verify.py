"""Checks a judge's answer against its batch before any write, and reports every problem with its location.

The answer is a filled-in judge file, or scores alone: {"SLOT": {"relevance": 4, …, "note": "…"}}.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tipbench.bench.judge.file import FILE_KEYS, FORMAT, ITEM_KEYS, SLOT_LENGTH, SLOT_LETTERS, scales
from tipbench.bench.records import Batch, Slot, Verdict
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.errors import InvalidInput, JudgeFileError
from tipbench.core.files import read_regular
from tipbench.core.identity import text_digest
from tipbench.core.untrusted import shown

_MAX_SHOWN = 20
_SLOT = re.compile(f"[{SLOT_LETTERS}]{{{SLOT_LENGTH}}}")
MOST_BYTES = 50_000_000  # of an answer by a webhook or a command
_LARGEST_FILE = 500_000_000  # the texts of 300,000 candidates


def read_judge_file(path: Path) -> dict[str, Any]:
    """Read the file's JSON and check only what is needed to find its batch; raise InvalidInput if it is unusable."""
    try:
        content = read_regular(path, _LARGEST_FILE)
    except OSError as error:
        raise InvalidInput(f"judge file {path} can't be read: {error.strerror or error}") from None
    return read_judge_data(content, f"judge file {path}")


def read_judge_data(content: bytes, what: str) -> dict[str, Any]:
    """Parse a judge file's content like `read_judge_file`; `what` is the subject of error messages."""
    try:
        data = json.loads(content.decode("utf-8-sig"), object_pairs_hook=reject_duplicate_keys)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what} is not UTF-8 text: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not JSON: {error}; was it saved in full?") from None
    if _is_scores_alone(data):
        named = isinstance(data.get("scores"), dict)
        batch = {"batch": data["batch"]} if named and "batch" in data else {}
        return {"format": FORMAT, **batch, "scores": data["scores"] if named else data}
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise InvalidInput(f"{what} is not a judge file: its format is {shown(found)}, not '{FORMAT}'")
    if not isinstance(data.get("batch"), str):
        raise InvalidInput(f"{what} does not say which batch it answers ('batch' must be text)")
    return data


def _is_scores_alone(data: Any) -> bool:
    """Return whether these are scores by slot, by themselves or beside the name of their batch."""
    if not isinstance(data, dict) or "items" in data:
        return False
    scores = data.get("scores", data if "format" not in data else None)
    if not isinstance(scores, dict) or not all(isinstance(one, dict) for one in scores.values()):
        return False
    return any(map(_SLOT.fullmatch, scores))


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; raise ValueError for duplicate keys, of which JSON would silently drop all but the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        duplicates = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise ValueError(f"the name {shown(duplicates[0])} appears twice in one object")
    return found


def verify(data: dict[str, Any], batch: Batch, rubric: Rubric, partial: bool = False) -> list[Verdict]:
    """Return the verdicts of a file, one per slot of the batch; raise JudgeFileError with every problem.

    With `partial`, untouched items are allowed, and only runs that are completely scored are returned.
    """
    if "items" not in data and "scores" in data:
        return _verify_scores(data["scores"], batch, rubric, partial)
    problems: list[str] = []
    stated = data.get("rubric")
    if not isinstance(stated, dict) or stated.get("digest") != batch.rubric_digest:
        problems.append("rubric.digest: not the rubric that the batch was made with; export again")
    elif stated.get("text") != rubric.text:
        problems.append("rubric.text: was changed; scores by another rubric need an export with it (--suite)")
    if data.get("scales") != scales(rubric):
        problems.append("scales: were changed; the rubric sets them")
    items = data.get("items")
    if not isinstance(items, list):
        raise JudgeFileError(
            "the judge file can't be applied, nothing was written:", [*problems, "items: must be a list"]
        )
    slots = {slot.slot: slot for slot in batch.slots}
    names = [_slot_name(item) for item in items]
    counted = Counter(names)
    problems += [f"slot {name}: is missing from the file" for name in slots if not counted[name]]
    verdicts = []
    untouched = [name for item, name in zip(items, names, strict=True) if _is_untouched(item)]
    if untouched and not partial:
        problems.append(f"{len(untouched)} of {len(items)} items are not filled in, slot {untouched[0]} is the first")
    for index, (item, name) in enumerate(zip(items, names, strict=True)):
        location = f"items[{index}]"
        if name is None or name not in slots:
            problems.append(f"{location}.slot: {shown(name)} is not a slot of batch {batch.id}")
        elif counted[name] > 1:
            problems.append(f"{location}.slot: {name} stands {counted[name]} times in the file")
        elif not _is_untouched(item):
            found: list[str] = []
            verdict = _verdict(item, slots[name], rubric, found)
            problems += [f"{location} (slot {name}): {problem}" for problem in found]
            if verdict:
                verdicts.append(verdict)
    problems += [f"{shown(key)}: unknown key in a judge file; is it a typo?" for key in data if key not in FILE_KEYS]
    if problems:
        raise JudgeFileError("the judge file can't be applied, nothing was written:", _abbreviate(problems))
    return _complete_runs(verdicts, batch) if partial else verdicts


def _verify_scores(given: Any, batch: Batch, rubric: Rubric, partial: bool) -> list[Verdict]:
    """Return the verdicts of scores alone, by slot; with `partial`, of those that are there."""
    slots = {slot.slot: slot for slot in batch.slots}
    problems = [f"{shown(name)}: is not a slot of batch {batch.id}" for name in given if name not in slots]
    missing = [name for name in slots if name not in given]
    if missing and not partial:
        problems.append(f"{len(missing)} of {len(slots)} items have no scores, slot {missing[0]} is the first")
    verdicts = []
    for name, slot in slots.items():
        if name in given:
            found: list[str] = []
            item = as_item(given[name] if isinstance(given[name], dict) else {}, rubric.flags)
            verdict = _scored(item, slot, rubric, found)
            problems += [f"slot {name}: {problem}" for problem in found]
            verdicts += [verdict] if verdict else []
    if problems:
        raise JudgeFileError("the scores can't be applied, nothing was written:", _abbreviate(problems))
    return verdicts


def as_item(given: Mapping[str, Any], flag_names: Collection[str]) -> dict[str, Any]:
    """Return the scores of one item in the form of a judge file's item; unknown names pass for criteria."""
    scores = {name: value for name, value in given.items() if name not in flag_names and name != "note"}
    flags = {name: value for name, value in given.items() if name in flag_names}
    return {"scores": scores, "flags": flags, "note": given.get("note") or ""}


def item_problems(given: Mapping[str, Any], slot: Slot, rubric: Rubric) -> list[str]:
    """Return what is wrong with the scores, flags and note that one item was given."""
    problems: list[str] = []
    _scored(as_item(given, rubric.flags), slot, rubric, problems)
    return problems


def _complete_runs(verdicts: list[Verdict], batch: Batch) -> list[Verdict]:
    """Return the verdicts of completely scored runs, their repeats, and all scored anchors."""
    scored = Counter(verdict.slot.run_id for verdict in verdicts if verdict.slot.kind == "candidate")
    wanted = Counter(slot.run_id for slot in batch.slots if slot.kind == "candidate")
    complete = {run_id for run_id, count in wanted.items() if scored[run_id] == count}
    taken = [verdict for verdict in verdicts if verdict.slot.kind == "anchor" or verdict.slot.run_id in complete]
    if not complete:
        raise JudgeFileError(
            "the judge file can't be applied, nothing was written:",
            ["no run is completely scored yet; --partial applies only those that are"],
        )
    return taken


def _is_untouched(item: Any) -> bool:
    scores = item.get("scores") if isinstance(item, dict) else None
    return isinstance(scores, dict) and bool(scores) and all(score is None for score in scores.values())


def _verdict(item: dict[str, Any], slot: Slot, rubric: Rubric, problems: list[str]) -> Verdict | None:
    candidate = item.get("candidate")
    if not isinstance(candidate, str) or text_digest(candidate) != slot.digest:
        problems.append("candidate: the text was changed")
    scenario = item.get("scenario")
    if not isinstance(scenario, str) or text_digest(scenario) != slot.scenario_digest:
        problems.append("scenario: the text was changed")
    if item.get("checked") != slot.flags:
        problems.append("checked: was changed; to overrule it, use 'flags'")
    problems += [f"{shown(key)}: unknown key in an item; is it a typo?" for key in item if key not in ITEM_KEYS]
    return _scored(item, slot, rubric, problems)


def _scored(item: dict[str, Any], slot: Slot, rubric: Rubric, problems: list[str]) -> Verdict | None:
    """Return the verdict of an item's scores, flags and note; None if there are problems, also earlier ones."""
    scores = _mapping(item, "scores", problems)
    problems += [f"scores.{shown(key)}: is not a criterion" for key in scores if key not in rubric.criteria]
    for name, criterion in rubric.criteria.items():
        score = scores.get(name)
        if score is None:
            problems.append(f"scores.{name}: is not filled in")
        elif isinstance(score, bool) or not isinstance(score, int):
            problems.append(f"scores.{name}: {shown(score)} is not a whole number")
        elif not criterion.min <= score <= criterion.max:
            problems.append(f"scores.{name}: {shown(score)} is outside {criterion.min}–{criterion.max}")
    flags, overruled = _flags(_mapping(item, "flags", problems), slot, rubric, problems)
    note = item.get("note", "")
    if not isinstance(note, str):
        problems.append("note: is not text")
    if problems:
        return None
    checked_scores = {name: int(scores[name]) for name in rubric.criteria}
    return Verdict(slot, checked_scores, flags, overruled, rubric.composite(checked_scores, flags), note)


def _flags(
    given: dict[str, Any], slot: Slot, rubric: Rubric, problems: list[str]
) -> tuple[dict[str, bool], tuple[str, ...]]:
    """Return the effective flags (the judge's value if given, else the checked one) and the names of overruled ones."""
    problems += [f"flags.{shown(key)}: is not a flag" for key in given if key not in rubric.flags]
    flags: dict[str, bool] = {}
    overruled = []
    for name in rubric.flags:
        value = given.get(name)
        checked = slot.flags.get(name)
        if value is not None and not isinstance(value, bool):
            problems.append(f"flags.{name}: {shown(value)} is neither true, false nor null")
        elif value is not None:
            flags[name] = value
            if checked is not None and value != checked:
                overruled.append(name)
        elif checked is not None:
            flags[name] = checked
        else:
            problems.append(f"flags.{name}: code can't check it; set it to true or false")
    return flags, tuple(overruled)


def _mapping(item: dict[str, Any], key: str, problems: list[str]) -> dict[str, Any]:
    value = item.get(key, {})
    if not isinstance(value, dict):
        problems.append(f"{key}: must be an object")
        return {}
    return value


def _slot_name(item: Any) -> str | None:
    name = item.get("slot") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _abbreviate(problems: list[str]) -> list[str]:
    rest = len(problems) - _MAX_SHOWN
    return problems if rest <= 0 else [*problems[:_MAX_SHOWN], f"… and {rest} more"]
