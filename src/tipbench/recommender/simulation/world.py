"""The simulated world, loaded from a file: categories, tips and personas."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tipbench.core.errors import InvalidInput
from tipbench.core.files import read_text
from tipbench.core.identity import data_digest
from tipbench.core.located_yaml import load_located
from tipbench.core.untrusted import printable
from tipbench.recommender.records import Hour, Name

_Weight = Annotated[float, Field(ge=-10, le=10, strict=True)]  # neither a boolean nor a string
_PersonaName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]  # becomes part of a user id


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Pool(_Part):
    """The pool of tips."""

    tips_per_category: Annotated[int, Field(ge=1, le=1000)]
    shortest: Annotated[int, Field(ge=1)]
    longest: Annotated[int, Field(le=2000)]
    most_effort_min: Annotated[float, Field(gt=0, le=600)]


class Persona(_Part):
    """One kind of user. Weights are on the logit scale."""

    name: _PersonaName
    about: str
    control: bool = False  # indifferent to what is shown, so no policy can beat another here, and none has to
    base: _Weight
    taste: dict[Name, _Weight] = {}
    taste_after: dict[Name, _Weight] | None = None  # the taste in the second half of the life
    best_hours: dict[Name, Hour] = {}  # by category
    hour_weight: _Weight = 0.0
    length_weight: _Weight = 0.0
    effort_weight: _Weight = 0.0
    focus_weight: _Weight = 0.0
    fatigue: Annotated[float, Field(ge=0, le=10)] = 0.0
    wakes: Hour = 7.0
    sleeps: Annotated[float, Field(gt=0, le=24)] = 23.0
    moods: Annotated[float, Field(ge=0, le=3)] = 0.0  # scale of the random taste of each moment, which nobody can know

    @property
    def character(self) -> dict[str, Any]:
        """Everything except the description, as data for JSON."""
        return self.model_dump(mode="json", exclude={"about"})

    @property
    def cares(self) -> bool:
        """Whether a policy can beat another by learning what this persona likes."""
        weights = (self.hour_weight, self.length_weight, self.effort_weight, self.focus_weight, self.fatigue)
        return any(weights) or any((*self.taste.values(), *(self.taste_after or {}).values()))

    def tastes(self, second_half: bool) -> Mapping[str, float]:
        return self.taste_after if second_half and self.taste_after is not None else self.taste


class World(_Part):
    name: Name
    categories: Annotated[tuple[Name, ...], Field(min_length=2, max_length=50)]
    pool: Pool
    personas: Annotated[tuple[Persona, ...], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _fits_together(self) -> "World":
        known = set(self.categories)
        for persona in self.personas:
            for mapping in (persona.taste, persona.taste_after or {}, persona.best_hours):
                unknown = sorted(set(mapping) - known)
                if unknown:
                    raise ValueError(f"{persona.name} names {', '.join(unknown)}, which is not a category")
            if persona.control and persona.cares:
                raise ValueError(
                    f"{persona.name} is a control, so it must not care what is shown; give it nothing but base and "
                    "moods"
                )
            if persona.wakes >= persona.sleeps:
                raise ValueError(f"{persona.name} sleeps before waking")
        if self.pool.shortest > self.pool.longest:
            raise ValueError(f"the shortest tip has {self.pool.shortest} characters, the longest {self.pool.longest}")
        if len(known) < len(self.categories):
            raise ValueError("two categories have the same name")
        names = [persona.name for persona in self.personas]
        if len(set(names)) < len(names):
            raise ValueError("two personas have the same name")
        return self

    @property
    def digest(self) -> str:
        """A digest of everything in the world."""
        return data_digest(self.model_dump(mode="json"))

    @property
    def shared_data(self) -> dict[str, Any]:
        """What all personas share, as data for JSON."""
        return self.model_dump(mode="json", include={"categories", "pool"})

    @property
    def tips(self) -> int:
        return self.pool.tips_per_category * len(self.categories)

    def only(self, names: Sequence[str]) -> "World":
        """Return the world with only the named personas; raise InvalidInput for an unknown or repeated name."""
        if not names or len(set(names)) < len(names):
            raise InvalidInput(f"name each persona once; given: {', '.join(names) or 'none'}")
        known = {persona.name: persona for persona in self.personas}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InvalidInput(f"there is no persona {unknown[0]!r}; there are {', '.join(known)}")
        return self.model_copy(update={"personas": tuple(known[name] for name in names)})


def load_world(path: Path) -> World:
    """Load a world; raise InvalidInput if the file can't be read or is not a valid world."""
    try:
        located = load_located(read_text(path))
    except OSError as error:
        raise InvalidInput(f"the world {path} can't be read: {error.strerror or error}; name another file") from error
    if located.problems:
        line, problem = located.problems[0]
        raise InvalidInput(f"{path} is not a valid world: line {line}: {printable(problem, 300)}")
    if not isinstance(located.data, dict):
        raise InvalidInput(f"{path} is not a valid world: it needs the keys {', '.join(World.model_fields)}")
    try:
        return World.model_validate(located.data)
    except ValidationError as error:
        first = error.errors()[0]
        problem = first["msg"].removeprefix("Value error, ")
        if first["loc"]:
            where = ".".join(str(part) for part in first["loc"])
            problem = f"line {located.line(first['loc'])}: {where}: {problem}"
        raise InvalidInput(f"{path} is not a valid world: {printable(problem, 300)}") from error
