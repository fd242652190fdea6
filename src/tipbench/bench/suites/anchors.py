"""Anchors: gold items with reference scores, for measuring a judge's drift.

A suite's anchors are published with it; a team's own file stays on its machine.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tipbench.bench.records import GoldItem, Scenario
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.validation import Slug, validated
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.files import read_text
from tipbench.core.located_yaml import LocatedData, load_located

NAME = "anchors.yaml"


class AnchorEntry(BaseModel):
    """One entry of anchors.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Slug
    scenario: str
    candidate: str = Field(min_length=1)
    scores: dict[str, int]
    reason: str = Field(min_length=1)


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
                GoldItem(entry.id, about, entry.scenario, entry.candidate, entry.scores, entry.reason, private)
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
