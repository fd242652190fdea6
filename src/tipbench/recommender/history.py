"""Running counts of what a user did, and the profiles derived from them."""

import math
from dataclasses import dataclass, field
from typing import Literal

from tipbench.recommender.features.v2 import LONGEST_DWELL_S
from tipbench.recommender.records import CategoryProfile, Profile

Reaction = Literal["completed", "dismissed", "ignored"]


@dataclass
class _Counts:
    shown: int = 0
    completed: int = 0
    dismissed: int = 0
    dwell_sum_s: float = 0.0
    hour_sin: float = 0.0
    hour_cos: float = 0.0

    @property
    def mean_dwell_s(self) -> float | None:
        return self.dwell_sum_s / self.shown if self.shown else None


@dataclass
class History:
    """The history of one user. Take the profile before scoring an event; call `observe` once its outcome is known."""

    _by_category: dict[str, _Counts] = field(default_factory=dict)
    _profiles: dict[str, CategoryProfile] = field(default_factory=dict)

    def observe(self, category: str, reaction: Reaction, hour: float, dwell_s: float) -> None:
        """Count one impression and its outcome. Dwell is capped at ten minutes: beyond that, the screen was left on.

        Raises ValueError for an hour outside [0, 24) or a dwell that is negative, infinite or NaN.
        """
        if not 0 <= hour < 24 or not 0 <= dwell_s < math.inf:
            raise ValueError(f"the hour {hour} should be in [0, 24), and the dwell {dwell_s} s a length of time")
        counts = self._by_category.setdefault(category, _Counts())
        counts.shown += 1
        counts.dwell_sum_s += min(dwell_s, LONGEST_DWELL_S)
        counts.dismissed += reaction == "dismissed"
        if reaction == "completed":
            counts.completed += 1
            counts.hour_sin += math.sin(math.tau * hour / 24)
            counts.hour_cos += math.cos(math.tau * hour / 24)
        self._profiles[category] = _category_profile(counts)

    def profile(self) -> Profile:
        """Return the profile by category, which can tell candidates apart."""
        return Profile(categories=dict(self._profiles))

    def flat_profile(self) -> Profile:
        """Return one profile for all categories, which can't tell candidates apart; for callers that store no more."""
        all_counts = list(self._by_category.values())
        shown = sum(counts.shown for counts in all_counts)
        if not shown:
            return Profile()
        sin_sum, cos_sum = sum(c.hour_sin for c in all_counts), sum(c.hour_cos for c in all_counts)
        preferred = math.atan2(sin_sum, cos_sum) / math.tau * 24 % 24 % 24  # % 24 twice: a tiny negative rounds to 24.0
        return Profile(
            completion_rate=sum(counts.completed for counts in all_counts) / shown,
            dismiss_rate=sum(counts.dismissed for counts in all_counts) / shown,
            mean_dwell_s=sum(counts.dwell_sum_s for counts in all_counts) / shown,
            preferred_hour=preferred if math.hypot(sin_sum, cos_sum) > 1e-9 else None,
            tip_volume=float(shown),
        )


def _category_profile(counts: _Counts) -> CategoryProfile:
    return CategoryProfile(
        shown=float(counts.shown),
        completed=float(counts.completed),
        dismissed=float(counts.dismissed),
        mean_dwell_s=counts.mean_dwell_s,
        hour_sin=counts.hour_sin,
        hour_cos=counts.hour_cos,
    )
