"""What a simulation found, as its JSON tells it: by policy and metric, over all personas and for each of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tipbench.core.errors import StateRefused


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Metric(_Part):
    """A decision; a margin is how far its 95 % interval reaches to either side, None where one seed can't tell."""

    mean: float
    margin: float | None
    total: float  # over a life
    over_time: list[float]
    over_time_margin: list[float | None]


ByPolicy = Mapping[str, Mapping[str, Metric]]  # policy → metric → what was found


class World(_Part):
    name: str
    digest: str


class Seeds(_Part):
    first: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1


class Plan(_Part):
    simulator: int
    world: World
    arms: list[dict[str, Any]]
    seeds: Seeds
    steps: int
    offered: int


class Persona(_Part):
    name: str
    about: str
    control: bool
    arms: ByPolicy


class Outcome(_Part):
    plan: Plan
    bins: list[int]  # the last decision of each point in time
    overall: ByPolicy
    personas: list[Persona]

    @property
    def policies(self) -> Sequence[str]:
        return list(self.overall)


def read_outcome(content: bytes | Mapping[str, Any], whose: str) -> Outcome:
    try:
        return Outcome.model_validate_json(content) if isinstance(content, bytes) else Outcome.model_validate(content)
    except ValidationError as error:
        raise StateRefused(
            f"{whose} was kept in a form that this tipbench does not know; start it again with this one"
        ) from error
