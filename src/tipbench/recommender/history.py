"""What a user did, counted as it happens, and the profile that comes of it."""

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
    dwelt_s: float = 0.0
    hour_sin: float = 0.0
    hour_cos: float = 0.0

    @property
    def mean_dwell_s(self) -> float | None:
        return self.dwelt_s / self.shown if self.shown else None


@dataclass
class History:
    """Of one user. Read it before an event is scored; after its reward it knows what came of the event."""

    _by_category: dict[str, _Counts] = field(default_factory=dict)
    _entries: dict[str, CategoryProfile] = field(default_factory=dict)

    def observe(self, category: str, reaction: Reaction, hour: float, dwell_s: float) -> None:
        """Something was shown. A dwell counts up to ten minutes: beyond, somebody has left the screen on."""
        if not 0 <= hour < 24 or not 0 <= dwell_s < math.inf:
            raise ValueError(f"the hour {hour} should be in [0, 24), and the dwell {dwell_s} s a length of time")
        counts = self._by_category.setdefault(category, _Counts())
        counts.shown += 1
        counts.dwelt_s += min(dwell_s, LONGEST_DWELL_S)
        counts.dismissed += reaction == "dismissed"
        if reaction == "completed":
            counts.completed += 1
            counts.hour_sin += math.sin(math.tau * hour / 24)
            counts.hour_cos += math.cos(math.tau * hour / 24)
        self._entries[category] = _entry(counts)

    def profile(self) -> Profile:
        """By category, which tells candidates apart."""
        return Profile(categories=dict(self._entries))

    def flat_profile(self) -> Profile:
        """Of the user as a whole, which can't: for those who keep no more than that."""
        everything = list(self._by_category.values())
        shown = sum(counts.shown for counts in everything)
        if not shown:
            return Profile()
        sine, cosine = sum(c.hour_sin for c in everything), sum(c.hour_cos for c in everything)
        preferred = math.atan2(sine, cosine) / math.tau * 24 % 24 % 24  # twice: just before midnight rounds to 24
        return Profile(
            completion_rate=sum(counts.completed for counts in everything) / shown,
            dismiss_rate=sum(counts.dismissed for counts in everything) / shown,
            mean_dwell_s=sum(counts.dwelt_s for counts in everything) / shown,
            preferred_hour=preferred if math.hypot(sine, cosine) > 1e-9 else None,
            tip_volume=float(shown),
        )


def _entry(counts: _Counts) -> CategoryProfile:
    return CategoryProfile(
        shown=float(counts.shown),
        completed=float(counts.completed),
        dismissed=float(counts.dismissed),
        mean_dwell_s=counts.mean_dwell_s,
        hour_sin=counts.hour_sin,
        hour_cos=counts.hour_cos,
    )
