"""Validation of a suite's files against their models; problems are reported by line."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tipbench.bench.suites.checks import Check
from tipbench.bench.suites.contract import Contract
from tipbench.core.located_yaml import LocatedData

_Model = TypeVar("_Model")
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,60}$")]
VariableName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]


def validated(adapter: TypeAdapter[_Model], located: LocatedData, name: str, problems: list[str]) -> _Model | None:
    """Validate the data and add every problem to `problems`; return None if there is any."""
    problems.extend(f"{name}:{line}: {message}" for line, message in located.problems)
    if located.problems and located.data is None:
        return None
    try:
        checked = adapter.validate_python(located.data, strict=True)
        return None if located.problems else checked
    except ValidationError as error:
        for detail in error.errors():
            path = tuple(part for part in detail["loc"] if part != "[key]")
            where = ".".join(str(part) for part in path)
            message = str(detail["msg"]).removeprefix("Value error, ")
            if detail["type"] == "extra_forbidden":
                message = "unknown key; is it a typo?"
            elif detail["type"] == "missing":
                message = "is missing"
            problems.append(f"{name}:{located.line(path)}: {where + ': ' if where else ''}{message}")
        return None


# Models of a suite's files, validated strictly: an unknown key is treated as a typo.


class SuiteFile(BaseModel):
    """suite.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = Field(alias="schema")
    name: Slug
    title: str = ""
    based_on: Slug | None = None  # a built-in suite whose rubric, prompts and scenario.md are used where there are none
    experiment_prefix: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")
    factors: dict[VariableName, Annotated[dict[Slug, dict[str, Any]], Field(min_length=1)]] = Field(min_length=1)
    cluster: VariableName | None = None  # scenarios that share a level of this factor are not independent
    output: Contract


class ScenarioEntry(BaseModel):
    """One entry of scenarios.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Slug
    factors: dict[VariableName, str]
    details: dict[VariableName, Any] = Field(default_factory=dict)
    checks: dict[VariableName, Check] = Field(default_factory=dict)  # for this scenario, by the rubric's flags


class PromptFront(BaseModel):
    """The front matter of a file in prompts/."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = ""
    system: str = ""
