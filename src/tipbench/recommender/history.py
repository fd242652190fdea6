"""Running counts of what a user did, and the profiles derived from them."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from tipbench.recommender.features.v2 import LONGEST_DWELL_S
from tipbench.recommender.records import CategoryProfile, Profile

Reaction = Literal["completed", "dismissed", "ignored"]


@dataclass
class _Counts:
    shown: float = 0.0
    completed: float = 0.0
    dismissed: float = 0.0
    dwelt: float = 0.0  # impressions whose dwell is known
    dwell_sum_s: float = 0.0
    hour_sin: float = 0.0
    hour_cos: float = 0.0

    @property
    def mean_dwell_s(self) -> float | None:
        return self.dwell_sum_s / self.dwelt if self.dwelt else None


@dataclass
class History:
    """The history of one user. Take the profile before scoring an event; call `observe` once its outcome is known.

    It starts from what was declared of the user: counts by category are added to, and figures of the user as a whole
    stay as declared, beside the categories, until `flat_profile` has counts to go by.
    """

    declared: Profile = field(default_factory=Profile)
    _by_category: dict[str, _Counts] = field(default_factory=dict)
    _profiles: dict[str, CategoryProfile] = field(default_factory=dict)
    _declared_as_a_whole: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._declared_as_a_whole = self.declared.model_dump(exclude={"categories"}, exclude_none=True)
        for category, entry in self.declared.categories.items():
            self._by_category[category] = _declared_counts(entry)
            self._profiles[category] = entry

    def observe(self, category: str, reaction: Reaction, hour: float, dwell_s: float) -> None:
        """Count one impression and its outcome. Dwell is capped at ten minutes: beyond that, the screen was left on.

        Raises ValueError for an hour outside [0, 24) or a dwell that is negative, infinite or NaN.
        """
        if not 0 <= hour < 24 or not 0 <= dwell_s < math.inf:
            raise ValueError(f"the hour {hour} should be in [0, 24), and the dwell {dwell_s} s a length of time")
        counts = self._by_category.setdefault(category, _Counts())
        counts.shown += 1
        counts.dwelt += 1
        counts.dwell_sum_s += min(dwell_s, LONGEST_DWELL_S)
        counts.dismissed += reaction == "dismissed"
        if reaction == "completed":
            counts.completed += 1
            counts.hour_sin += math.sin(math.tau * hour / 24)
            counts.hour_cos += math.cos(math.tau * hour / 24)
        self._profiles[category] = _category_profile(counts)

    def profile(self) -> Profile:
        """Return the profile by category, which can tell candidates apart."""
        return Profile(**self._declared_as_a_whole, categories=dict(self._profiles))

    def flat_profile(self) -> Profile:
        """Return one profile for all categories, which can't tell candidates apart; for callers that store no more."""
        all_counts = list(self._by_category.values())
        shown = sum(counts.shown for counts in all_counts)
        if not shown:
            return Profile(**self._declared_as_a_whole)
        dwelt = sum(counts.dwelt for counts in all_counts)
        sin_sum, cos_sum = sum(c.hour_sin for c in all_counts), sum(c.hour_cos for c in all_counts)
        preferred = math.atan2(sin_sum, cos_sum) / math.tau * 24 % 24 % 24  # % 24 twice: a tiny negative rounds to 24.0
        return Profile(
            completion_rate=sum(counts.completed for counts in all_counts) / shown,
            dismiss_rate=sum(counts.dismissed for counts in all_counts) / shown,
            mean_dwell_s=sum(counts.dwell_sum_s for counts in all_counts) / dwelt if dwelt else None,
            preferred_hour=preferred if math.hypot(sin_sum, cos_sum) > 1e-9 else None,
            tip_volume=shown,
        )


def _declared_counts(entry: CategoryProfile) -> _Counts:
    """Return declared counts as if they had been observed; what is not known counts as 0."""
    shown = entry.shown or 0.0
    dwelt = shown if entry.mean_dwell_s is not None else 0.0
    return _Counts(
        shown=shown,
        completed=entry.completed or 0.0,
        dismissed=entry.dismissed or 0.0,
        dwelt=dwelt,
        dwell_sum_s=dwelt * min(entry.mean_dwell_s or 0.0, LONGEST_DWELL_S),
        hour_sin=entry.hour_sin or 0.0,
        hour_cos=entry.hour_cos or 0.0,
    )


def _category_profile(counts: _Counts) -> CategoryProfile:
    return CategoryProfile(
        shown=counts.shown,
        completed=counts.completed,
        dismissed=counts.dismissed,
        mean_dwell_s=counts.mean_dwell_s,
        hour_sin=counts.hour_sin,
        hour_cos=counts.hour_cos,
    )
