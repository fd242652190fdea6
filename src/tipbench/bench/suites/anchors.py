"""Anchors: gold items with reference scores, for measuring a judge's drift.

A suite's anchors are published with it; a team's own file stays on its machine.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tipbench.bench.records import GoldItem, Scenario
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.suite import Suite
from tipbench.bench.suites.validation import Slug, validated
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.files import atomic_write, read_text
from tipbench.core.located_yaml import LocatedData, load_located
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.core.untrusted import json_text

NAME = "anchors.yaml"
ENOUGH_ANCHORS = 12  # with fewer, drift from the anchors is not assessed; docs/decisions/0013
_FIRST_ENTRY = re.compile(r"^( *)- ", re.MULTILINE)


class AnchorEntry(BaseModel):
    """One entry of anchors.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Slug
    scenario: str
    candidate: str = Field(min_length=1)
    scores: dict[str, int]
    reason: str = Field(min_length=1)
    by: list[str] = Field(default_factory=list)  # judges whose scores these are; they are never checked by it


def read_anchors(
    text: str, name: str, scenarios: Mapping[str, Scenario], rubric: Rubric, problems: list[str], private: bool = False
) -> tuple[GoldItem, ...]:
    """Read the anchors of a file; add everything that is wrong with it to `problems`, by line."""
    located = load_located(text)
    entries = validated(TypeAdapter(list[AnchorEntry]), located, name, problems)
    found = []
    seen: set[str] = set()
    for index, entry in enumerate(entries or ()):
        wrong = _problems(entry, scenarios, rubric, seen)
        seen.add(entry.id)
        problems += [f"{name}:{_line(located, index, key)}: anchor '{entry.id}': {what}" for key, what in wrong]
        if not wrong:
            about = scenarios[entry.scenario].text
            found.append(
                GoldItem(
                    *(entry.id, about, entry.scenario, entry.candidate, entry.scores, entry.reason),
                    private,
                    tuple(entry.by),
                )
            )
    return tuple(found)


def read_private_anchors(path: Path, scenarios: Mapping[str, Scenario], rubric: Rubric) -> tuple[GoldItem, ...]:
    """Read a team's own file, in the suite's format. Raises InvalidInput or SuiteError."""
    problems: list[str] = []
    try:
        found = read_anchors(read_text(path), path.name, scenarios, rubric, problems, private=True)
    except OSError as error:
        raise InvalidInput(f"the anchors in {path} (TIPBENCH_ANCHORS) can't be read: {error.strerror}") from None
    if problems:
        raise SuiteError(f"the anchors in {path} (TIPBENCH_ANCHORS) can't be used:", problems)
    return found


def _problems(
    entry: AnchorEntry, scenarios: Mapping[str, Scenario], rubric: Rubric, seen: set[str]
) -> list[tuple[str, str]]:
    found = []
    if entry.id in seen:
        found.append(("id", "the id is used twice"))
    if entry.scenario not in scenarios:
        found.append(("scenario", f"there is no scenario '{entry.scenario}' (there are {', '.join(scenarios)})"))
    if entry.candidate in rubric.text:
        found.append(("candidate", "the text is one of the rubric's examples, which every judge has seen"))
    for name, criterion in rubric.criteria.items():
        score = entry.scores.get(name)
        if score is None or not criterion.min <= score <= criterion.max:
            problem = "is missing" if score is None else f"{score} is outside {criterion.min}–{criterion.max}"
            found.append(("scores", f"{name}: {problem}"))
    found += [("scores", f"{name}: is not a criterion") for name in entry.scores if name not in rubric.criteria]
    return found


def _line(located: LocatedData, index: int, key: str) -> int:
    return located.line((index, key))


def without_anchors(suite: Suite, settings: Settings) -> str:
    """Say what it means that a suite has too few anchors to check a judge; empty if it has enough."""
    found = len(suite.anchors)
    if found >= ENOUGH_ANCHORS or not suite.rubric.criteria or settings.is_set("TIPBENCH_ANCHORS"):
        return ""
    has = f"only {counted(found, 'anchor')}, and {ENOUGH_ANCHORS} are needed" if found else "no anchors"
    return (
        f"Suite '{suite.name}' has {has}, so nobody checks its judges: scores count without evidence, even random "
        f"ones. Write {NAME} (docs/suites.md), or let two judges score an experiment and run 'tipbench suite anchors'."
    )


# Writing: entries are added to the text of a suite's file, whose comments stay.


def entries_text(entries: Sequence[AnchorEntry]) -> str:
    """Return the entries as a part of anchors.yaml."""
    return "".join(_entry_text(entry) for entry in entries)


def _entry_text(entry: AnchorEntry) -> str:
    scores = ", ".join(f"{name}: {score}" for name, score in entry.scores.items())
    by = f"  by: [{', '.join(map(json_text, entry.by))}]\n" if entry.by else ""
    return (
        f"- id: {json_text(entry.id)}\n  scenario: {json_text(entry.scenario)}\n"
        f"  candidate: {json_text(entry.candidate)}\n  scores: {{{scores}}}\n  reason: {json_text(entry.reason)}\n{by}"
    )


def is_writable(entry: AnchorEntry) -> bool:
    """Return whether the entry reads back as it is: YAML can't hold every character."""
    return bool(load_located(entries_text([entry])).data == [entry.model_dump(exclude_defaults=True)])


def read_entries(path: Path, suite: Suite) -> list[AnchorEntry]:
    """Read a file of proposed anchors. Raises InvalidInput, or SuiteError with every problem by line."""
    try:
        text = read_text(path)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}") from None
    problems: list[str] = []
    read_anchors(text, path.name, {one.id: one for one in suite.scenarios}, suite.rubric, problems)
    if problems:
        raise SuiteError(f"{path} can't be accepted; nothing was changed:", problems)
    return TypeAdapter(list[AnchorEntry]).validate_python(load_located(text).data)


def accept_anchors(
    suite: Suite, entries: Sequence[AnchorEntry], settings: Settings, say: Callable[[str], None]
) -> list[str]:
    """Add entries to a suite's anchors.yaml; return the ids of those that were not in it yet.

    Raises InvalidInput if the file can't take them, SuiteError with every problem; nothing is changed then.
    """
    if suite.is_built_in:
        raise InvalidInput(
            f"suite '{suite.name}' is built in and can't be changed; keep these anchors in a file of your own and set "
            "TIPBENCH_ANCHORS to it"
        )
    path = suite.folder / NAME
    lock = lock_path(settings.home, "anchors", str(suite.folder))
    with exclusive(lock, f"another process changes {path}", wait=True, notify=say):
        text = read_text(path) if path.exists() else ""
        known = load_located(text).data or []
        texts = {(one.get("scenario"), one.get("candidate")) for one in known if isinstance(one, dict)}
        new = [entry for entry in entries if (entry.scenario, entry.candidate) not in texts]
        if not new:
            return []
        combined = _with_entries(text, new)
        problems: list[str] = []
        found = read_anchors(combined, NAME, {one.id: one for one in suite.scenarios}, suite.rubric, problems)
        if problems:
            raise SuiteError(f"{path} can't take these anchors; nothing was changed:", problems)
        assert len(found) == len(known) + len(new)
        try:
            atomic_write(path, combined, durable=True)
        except OSError as error:
            raise InvalidInput(f"{path} can't be written: {error.strerror}; nothing was changed") from None
    return [entry.id for entry in new]


def _with_entries(text: str, new: Sequence[AnchorEntry]) -> str:
    """Return the text of a list with entries added, indented as its first one is."""
    first = _FIRST_ENTRY.search(text)
    indent = first[1] if first else ""
    added = "".join(f"{indent}{line}\n" for line in entries_text(new).splitlines())
    before = text.rstrip() if first else text.rstrip().removesuffix("[]").rstrip()  # an empty list
    return f"{before}\n{added}" if before else added
