"""The simulated world, loaded from a file: categories, tips and personas.

A world says which version of the simulator it is made for. Version 2 knows point personas, each with tips of its own.
Version 3 draws users around their persona, and offers all of them the same tips; what it adds is optional here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_serializer,
    model_serializer,
    model_validator,
)

from tipbench.core.errors import InvalidInput
from tipbench.core.files import read_text
from tipbench.core.identity import data_digest
from tipbench.core.located_yaml import load_located
from tipbench.core.untrusted import printable
from tipbench.recommender.records import Hour, Name, Profile

_Weight = Annotated[float, Field(ge=-10, le=10, strict=True)]  # neither a boolean nor a string
_PersonaName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]  # becomes part of a user id


_Share = Annotated[float, Field(ge=0, le=1)]
_Deviation = Annotated[float, Field(ge=0, le=5)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    added: ClassVar[frozenset[str]] = frozenset()  # fields that version 2 of the simulator does not have

    @model_serializer(mode="wrap")
    def _leave_out_what_was_added(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out added fields that are at their defaults: lives and digests of older worlds stay what they were."""
        fields = type(self).model_fields
        data: dict[str, Any] = handler(self)
        return {
            name: value
            for name, value in data.items()
            if name not in self.added or getattr(self, name) != fields[name].default
        }


class Quality(_Part):
    """How good each tip is for everybody (standard normal), and what judges of the bench say of some of them."""

    judged: _Share  # share of the tips that were judged
    correlation: Annotated[float, Field(ge=-1, le=1)]  # of the judges' impression with the quality, before rounding


class Pool(_Part):
    """The pool of tips."""

    added = frozenset({"quality"})
    tips_per_category: Annotated[int, Field(ge=1, le=1000)]
    shortest: Annotated[int, Field(ge=1)]
    longest: Annotated[int, Field(le=2000)]
    most_effort_min: Annotated[float, Field(gt=0, le=600)]
    quality: Quality | None = None


class Feedback(_Part):
    """When rewards arrive. The rest arrives before the next decision."""

    late: _Share
    mean_delay_h: Annotated[float, Field(gt=0, le=1000)]
    missing: _Share  # share that never arrives


class Dwell(_Part):
    """How long a tip is looked at: 20 s · exp(slope · utility + spread · a standard normal)."""

    slope: Annotated[float, Field(ge=-2, le=2)] = 0.5
    spread: Annotated[float, Field(ge=0, le=3)] = 0.8


class Spread(_Part):
    """Standard deviations, on the logit scale, by which users of one persona differ from it."""

    base: _Deviation = 0.0
    taste: _Deviation = 0.0  # for each category, also for those that the persona does not name
    weights: _Deviation = 0.0  # for each weight
    hours: Annotated[float, Field(ge=0, le=12)] = 0.0  # for each best hour, in hours
    fatigue: _Deviation = 0.0  # of the logarithm of the fatigue


class Persona(_Part):
    """One kind of user. Weights are on the logit scale."""

    added = frozenset({"quality_weight", "drift", "spread", "profile_features"})
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
    quality_weight: _Weight = 0.0
    drift: _Deviation = 0.0  # standard deviation of how far each taste wanders, a little with every decision, in 200
    spread: Spread | None = None  # None: all users of this persona are alike
    profile_features: Profile | None = None  # what the app declares of such a user from the start; may be wrong

    @field_serializer("profile_features")
    def _what_is_declared(self, profile: Profile | None) -> dict[str, Any] | None:
        """Leave out what is not known, so that a field that profiles get later changes no world."""
        return None if profile is None else profile.model_dump(mode="json", exclude_defaults=True)

    @property
    def character(self) -> dict[str, Any]:
        """Everything except the description, as data for JSON."""
        return self.model_dump(mode="json", exclude={"about"})

    @property
    def cares(self) -> bool:
        """Whether a policy can beat another by learning what this persona likes."""
        spread = self.spread or Spread()
        weights = (self.hour_weight, self.length_weight, self.effort_weight, self.focus_weight, self.quality_weight)
        changes = (self.fatigue, self.drift, spread.taste, spread.weights)
        return any((*weights, *changes, *self.taste.values(), *(self.taste_after or {}).values()))

    def tastes(self, second_half: bool) -> Mapping[str, float]:
        return self.taste_after if second_half and self.taste_after is not None else self.taste


class World(_Part):
    added = frozenset({"simulator", "feedback", "dwell"})
    name: Name
    categories: Annotated[tuple[Name, ...], Field(min_length=2, max_length=50)]
    pool: Pool
    personas: Annotated[tuple[Persona, ...], Field(min_length=1, max_length=100)]
    simulator: Literal[2, 3] = 2  # version; a new one is needed when the same seed gives different lives
    feedback: Feedback | None = None  # None: every reward arrives before the next decision
    dwell: Dwell = Dwell()

    @model_validator(mode="after")
    def _uses_what_its_simulator_has(self) -> "World":
        parts = (self, self.pool, *self.personas)
        used = [name for part in parts for name in part.model_dump() if name in part.added - {"simulator"}]
        if self.simulator == 2 and used:
            raise ValueError(f"{used[0]} needs version 3 of the simulator; add simulator: 3")
        if self.feedback and self.feedback.late + self.feedback.missing > 1:
            raise ValueError("the shares of late and of missing rewards are more than 1 together")
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> "World":
        known = set(self.categories)
        for persona in self.personas:
            declared = persona.profile_features.categories if persona.profile_features else {}
            for mapping in (persona.taste, persona.taste_after or {}, persona.best_hours, declared):
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
        return self.model_dump(mode="json", exclude={"name", "personas"})

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


_REQUIRED = [name for name, field in World.model_fields.items() if field.is_required()]


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
        raise InvalidInput(f"{path} is not a valid world: it needs the keys {', '.join(_REQUIRED)}")
    try:
        return World.model_validate(located.data)
    except ValidationError as error:
        first = error.errors()[0]
        problem = first["msg"].removeprefix("Value error, ")
        if first["loc"]:
            where = ".".join(str(part) for part in first["loc"])
            problem = f"line {located.line(first['loc'])}: {where}: {problem}"
        raise InvalidInput(f"{path} is not a valid world: {printable(problem, 300)}") from error
