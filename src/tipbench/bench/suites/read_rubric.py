"""A rubric from its text, with everything that is wrong with it by line."""

from pydantic import TypeAdapter

from tipbench.bench.suites.front_matter import split_front_matter
from tipbench.bench.suites.rubric import Rubric, RubricFront, missing_levels
from tipbench.bench.suites.validation import validated
from tipbench.core.errors import SuiteError
from tipbench.core.located_yaml import load_located


def parse_rubric(text: str, source: str = "rubric.md") -> Rubric:
    """A rubric from its text, as it was stored with a run."""
    problems: list[str] = []
    rubric = read_rubric(text, source, problems)
    if rubric is None or problems:
        raise SuiteError(f"{source} can't be used:", problems)
    return rubric


def read_rubric(text: str, name: str, problems: list[str]) -> Rubric | None:
    split = split_front_matter(text)
    if split is None:
        problems.append(f"{name}:1: the front matter is missing: YAML between two '---' lines at the top")
        return None
    located = load_located(split.yaml, split.yaml_line)
    front = validated(TypeAdapter(RubricFront), located, name, problems)
    if front is None:
        return None
    for gap in missing_levels(front, split.body):
        in_front = located.line(("criteria", gap.criterion))
        problems.append(f"{name}:{in_front if gap.heading is None else split.body_line + gap.heading}: {gap.message}")
    return Rubric(text, front, split.body)
