"""The rubric that judges score by: a Markdown file with criteria, flags and weights in its front matter."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from tipbench.bench.suites.checks import BY_SCENARIO, Check, checked
from tipbench.bench.suites.front_matter import split_front_matter
from tipbench.bench.suites.validation import validated
from tipbench.core.errors import SuiteError
from tipbench.core.identity import text_digest
from tipbench.core.located_yaml import dump_yaml, load_located

_MAX_WEIGHT = 1_000.0
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
# Names of other columns, wherever scores are shown or exported.
_RESERVED = {
    "composite", "rank", "model", "prompt", "prompt_digest", "scenario", "repeat", "run_id", "scored", "judged",
    "pending", "failed", "empty", "generate_s", "wall_s", "candidates", "output_tokens", "diversity", "judge",
    "provisional", "counted", "batch", "rubric_digest", "candidate", "note", "text", "top", "p_top", "p_best",
    "if_worst", "if_best", "missing", "on_front",
}  # fmt: skip


class Criterion(BaseModel):
    """A question that a judge answers on a scale of whole numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    min: int = Field(ge=-100, le=100)
    max: int = Field(ge=-100, le=100)
    weight: float = Field(1.0, ge=-_MAX_WEIGHT, le=_MAX_WEIGHT)
    question: str = ""
    lexical: Literal["overlap", "concrete", "calm"] = "overlap"  # the rule that the lexical judge applies

    @model_validator(mode="after")
    def _check_scale(self) -> "Criterion":
        if not self.min < self.max <= self.min + 20:
            raise ValueError(f"a scale needs 1 to 20 steps upwards; this one goes from {self.min} to {self.max}")
        return self


class Flag(Check):
    """A yes/no property, checked by code where possible; without a check, the judge must answer it."""

    weight: float = Field(ge=-_MAX_WEIGHT, le=_MAX_WEIGHT)
    question: str = ""

    @property
    def worst(self) -> bool:
        """The value that lowers the composite."""
        return self.weight < 0


class Tolerances(BaseModel):
    """How far a judge may be from the anchors, and from itself, before a batch does not count.

    `offset` and `repeats` are shares of a criterion's scale, so that one number fits scales of any length.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    offset: float = Field(0.11, gt=0, le=1)  # mean distance from the anchors: 0.44 points on 1–5
    kappa: float = Field(0.6, ge=-1, le=1)  # quadratically weighted kappa with the anchors, at least
    repeats: float = Field(0.25, gt=0, le=1)  # mean distance between two scorings of one item: a point on 1–5


class RubricFront(BaseModel):
    """The front matter of rubric.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")
    criteria: dict[Name, Criterion] = Field(default_factory=dict, max_length=12)
    flags: dict[Name, Flag] = Field(default_factory=dict, max_length=12)
    tolerances: Tolerances = Tolerances()
    # Of each scenario, by flag. A suite declares them with its scenarios; they are put here when it is loaded, so that
    # a rubric's text holds everything that scores depend on.
    scenario_checks: dict[str, dict[Name, Check]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_criteria(self) -> "RubricFront":
        unchecked = [name for name, flag in self.flags.items() if not flag.check]
        if not self.criteria and (unchecked or not self.flags):
            missing = f"flag '{unchecked[0]}' has no check" if unchecked else "there is no flag either"
            raise ValueError(f"criteria are missing; a rubric without any needs flags that code checks, and {missing}")
        return self

    @model_validator(mode="after")
    def _check_names_and_weights(self) -> "RubricFront":
        doubled = sorted(self.criteria.keys() & self.flags.keys())
        if doubled:
            raise ValueError(f"used both as a criterion and as a flag: {', '.join(doubled)}; rename one of the two")
        weights = [*(c.weight for c in self.criteria.values()), *(f.weight for f in self.flags.values())]
        if not any(weights):
            raise ValueError("all weights are 0, so every composite would be the same; change at least one weight")
        reserved = sorted({*self.criteria, *self.flags} & _RESERVED)
        if reserved:
            raise ValueError(f"already used as names of other columns: {', '.join(reserved)}; choose other names")
        return self


class Rubric:
    """Criteria and flags with their weights, and the text that judges read."""

    def __init__(self, text: str, front: RubricFront, body: str) -> None:
        self.text = text
        self.digest = text_digest(text)
        self.name = front.name
        self.criteria = front.criteria
        self.flags = front.flags
        self.tolerances = front.tolerances
        self.scenario_checks = front.scenario_checks
        self.body = body

    @property
    def by_code(self) -> bool:
        """Whether code alone scores by it: there is no criterion, and every flag has a check."""
        return not self.criteria

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of all numbers in a verdict, the composite last."""
        return (*self.criteria, *self.flags, "composite")

    def composite(self, scores: Mapping[str, float], flags: Mapping[str, float]) -> float:
        of_criteria: float = 0  # by loops: `sum` of a generator takes half as long again, for each cell
        of_flags: float = 0
        for name, criterion in self.criteria.items():
            of_criteria += criterion.weight * scores[name]
        for name, flag in self.flags.items():
            of_flags += flag.weight * flags[name]
        return of_criteria + of_flags

    def lowest(self) -> dict[str, float]:
        """Return the rubric's minimum, the scores of an answer without a usable candidate."""
        scores = {name: float(c.min if c.weight >= 0 else c.max) for name, c in self.criteria.items()}
        flags = {name: float(f.worst) for name, f in self.flags.items()}
        return {**scores, **flags, "composite": self.composite(scores, flags)}

    def highest_composite(self) -> float:
        scores = {name: float(c.max if c.weight >= 0 else c.min) for name, c in self.criteria.items()}
        return self.composite(scores, {name: float(not f.worst) for name, f in self.flags.items()})

    def checked_flags(self, candidate: str, format_ok: bool, scenario: str) -> dict[str, bool]:
        """Return the flags that code can check for a candidate.

        A check that the scenario declares goes before the flag's own. Where a flag is checked by scenario and this one
        declares nothing, nothing is wrong: it has the value that is better for the composite.
        """
        own = self.scenario_checks.get(scenario, {})
        found: dict[str, bool] = {}
        for name, flag in self.flags.items():
            check: Check = own.get(name, flag)
            if check.check == BY_SCENARIO:
                found[name] = not flag.worst
            elif check.check:
                found[name] = checked(check, candidate, format_ok, name, flag.worst)
        return found

    def code_scores(self, candidates: Sequence[Mapping[str, bool]]) -> dict[str, float]:
        """Return the scores of a cell that code alone scores, from the flags of its candidates: means, and composite.

        Without a candidate they are the rubric's minimum.
        """
        if not candidates:
            return self.lowest()
        means = {name: sum(one[name] for one in candidates) / len(candidates) for name in self.flags}
        return {**means, "composite": self.composite({}, means)}


class Gap(NamedTuple):
    """Something that the rubric's body should explain but does not."""

    criterion: str
    heading: int | None  # line of the criterion's heading in the body, from 0; None if it has no section
    message: str


class Section(NamedTuple):
    """The text under a `##` heading."""

    line: int  # line of the heading in the body, from 0
    text: str


def missing_levels(front: RubricFront, body: str) -> list[Gap]:
    """Find criteria without a `##` section, and levels of their scales without a `###` heading in it."""
    gaps = []
    found = sections(body)
    for name, criterion in front.criteria.items():
        section = found.get(name.replace("_", " "))
        if section is None:
            title = name.replace("_", " ").title()
            gaps.append(Gap(name, None, f"criterion '{name}' has no section; add a heading '## {title}'"))
            continue
        headings = set(re.findall(r"^### +(-?\d+) *$", section.text, re.MULTILINE))
        missing = [str(n) for n in range(criterion.min, criterion.max + 1) if str(n) not in headings]
        if missing:
            message = f"criterion '{name}' does not say what {', '.join(missing)} means"
            gaps.append(Gap(name, section.line, f"{message}; add a heading '### {missing[0]}'"))
    return gaps


def sections(body: str) -> dict[str, Section]:
    """Return the body's sections by their headings in lower case."""
    headings = list(re.finditer(r"^## +(\S.*)$", body, re.MULTILINE))
    ends = [*(heading.start() for heading in headings), len(body)][1:]
    return {
        heading[1].strip().lower(): Section(body.count("\n", 0, heading.start()), body[heading.end() : end])
        for heading, end in zip(headings, ends, strict=True)
    }


# Parsing: problems are reported by line.


def parse_rubric(text: str, source: str = "rubric.md") -> Rubric:
    """Parse a rubric's text, such as one stored with a run. Raises SuiteError with every problem."""
    problems: list[str] = []
    rubric = read_rubric(text, source, problems)
    if rubric is None or problems:
        raise SuiteError(f"{source} can't be used:", problems)
    return rubric


def read_rubric(text: str, name: str, problems: list[str]) -> Rubric | None:
    """Parse a rubric and add everything that is wrong with it to `problems`; None if it can't be parsed."""
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


def check_problems(rubric: Rubric, name: str) -> list[str]:
    """Return what is wrong with the patterns and schemas of a rubric's own checks, by line of the file `name`."""
    found = {flag: one.problem for flag, one in rubric.flags.items()}
    split = split_front_matter(rubric.text)
    if split is None or not any(found.values()):
        return []
    located = load_located(split.yaml, split.yaml_line)
    return [
        f"{name}:{located.line(('flags', flag))}: flag '{flag}': {problem}"
        for flag, problem in found.items()
        if problem
    ]


def with_scenario_checks(rubric: Rubric, checks: Mapping[str, Mapping[str, Check]]) -> Rubric:
    """Return the rubric with the checks that scenarios declare, which become part of its text and so of its digest."""
    split = split_front_matter(rubric.text)
    if not checks or split is None:
        return rubric
    data = {
        scenario: {name: {"check": one.check, **one.parameters} for name, one in own.items()}
        for scenario, own in checks.items()
    }
    added = dump_yaml({"scenario_checks": data})
    newline = "" if split.yaml.endswith("\n") else "\n"
    return parse_rubric(f"---\n{split.yaml}{newline}{added}---\n{split.body}")
