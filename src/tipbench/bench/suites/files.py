"""The shapes of a suite's files, checked strictly: an unknown key is a typo until proven otherwise."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.suites.contract import Contract

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,60}$")]
VariableName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]


class SuiteFile(BaseModel):
    """suite.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = Field(alias="schema")
    name: Slug
    title: str = ""
    experiment_prefix: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")
    factors: dict[VariableName, Annotated[dict[Slug, dict[str, Any]], Field(min_length=1)]] = Field(min_length=1)
    cluster: VariableName | None = None  # scenarios with the same level of this factor are not independent
    output: Contract


class ScenarioEntry(BaseModel):
    """One entry of scenarios.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Slug
    factors: dict[VariableName, str]
    details: dict[VariableName, Any] = Field(default_factory=dict)


class PromptFront(BaseModel):
    """The front matter of a file in prompts/."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = ""
    system: str = ""
