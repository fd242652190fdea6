"""Input records of the recommender, validated on construction so that the library rejects what the service rejects."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MOST_CANDIDATES = 200
_MAX_CATEGORIES = 1000
_LARGE = 1e9  # more than any real count, and far from overflowing a sum of squares


def _measured_or_none(value: Any) -> Any:
    """Turn booleans, NaN and infinities into None: they are not measurements, so the value is unknown."""
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


UserId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]  # becomes part of a file name
EventId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
Hour = Annotated[float, Field(ge=0, lt=24)]
Amount = Annotated[float, Field(ge=0, le=_LARGE)]
_MeasuredOrNone = BeforeValidator(_measured_or_none)
MaybeRate = Annotated[Annotated[float, Field(ge=0, le=1)] | None, _MeasuredOrNone]
MaybeHour = Annotated[Hour | None, _MeasuredOrNone]
MaybeAmount = Annotated[Amount | None, _MeasuredOrNone]
MaybeSum = Annotated[Annotated[float, Field(ge=-_LARGE, le=_LARGE)] | None, _MeasuredOrNone]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Context(_Record):
    """The moment in which somebody is shown something."""

    hour: Hour  # the user's local hour, fractional
    focus_category: Name | None = None


class Source(_Record):
    """Where a candidate's text comes from: a cell of the bench, and the MLflow run that holds it."""

    run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    cell: Annotated[str, Field(pattern=r"^[0-9a-f]{12,64}$")]


class Candidate(_Record):
    """Something that could be shown."""

    id: Name
    category: Name
    len_chars: Annotated[int, Field(ge=0, le=int(_LARGE))] = 0
    effort_min: Amount | None = None
    hours_since_shown: Amount | None = None  # None: never shown
    source: Source | None = None
    judged: MaybeRate = None  # the judged composite of the run that wrote it, scaled to 0..1; None: not judged


class CategoryProfile(_Record):
    """What a user did with the tips of one category. None, and what is left out, is not known."""

    shown: MaybeAmount = None
    completed: MaybeAmount = None
    dismissed: MaybeAmount = None
    mean_dwell_s: MaybeAmount = None  # mean of observations clipped at ten minutes each
    hour_sin: MaybeSum = None  # sum of sin(2π·hour/24) over the completions
    hour_cos: MaybeSum = None


class Profile(_Record):
    """What is known of a user: by category, which tells candidates apart, or flat, which can't."""

    completion_rate: MaybeRate = None
    dismiss_rate: MaybeRate = None
    mean_dwell_s: MaybeAmount = None
    preferred_hour: MaybeHour = None
    tip_volume: MaybeAmount = None
    categories: Annotated[dict[Name, CategoryProfile], Field(max_length=_MAX_CATEGORIES)] = {}


def _check_unique_ids(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    seen: set[str] = set()
    for candidate in candidates:
        if candidate.id in seen:
            raise ValueError(f"should name each candidate once; {candidate.id!r} appears twice")
        seen.add(candidate.id)
    return candidates


class Request(_Record):
    """Which of the candidates should this user see now?"""

    user_id: UserId
    event_id: EventId
    context: Context
    candidates: Annotated[
        tuple[Candidate, ...],
        Field(min_length=1, max_length=MOST_CANDIDATES, strict=False),
        AfterValidator(_check_unique_ids),
    ]
    profile_features: Profile | None = None


class Reward(_Record):
    """The reward for a scored event."""

    user_id: UserId
    event_id: EventId
    reward: Annotated[float, Field(ge=-1, le=1)]
