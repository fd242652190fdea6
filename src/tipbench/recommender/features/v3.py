"""Version 3: version 2, the category itself, how tired the user is of it, and what is known about the tip.

A request alone does not tell all of it. Tiredness comes from what was shown to the user before, and a tip's earned
reward from the population prior's file, so both are 0 here and filled in by the policy. The last number names the
category; the policy gives each category that a user has met an intercept of its own. Formulas and rationale:
docs/decisions/0012.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tipbench.recommender.features import v1, v2
from tipbench.recommender.features.interface import Features, category_number
from tipbench.recommender.records import Request

NAMES = (*v2.NAMES, "tiredness", "judged", "tip_reward", "category")
DENSE = len(NAMES) - 1  # numbers that are regressed on as they are
_TIREDNESS, _JUDGED, _TIP_REWARD, CATEGORY = range(DENSE - 3, DENSE + 1)
MOST_CATEGORIES = 32  # of one user; all others share an intercept and a tiredness
_FADES_AFTER_MS = 24 * 3_600_000
_VERY_TIRED = 4.0  # impressions within a day


def rows(request: Request) -> list[list[float]]:
    found = v1.rows(request)
    by_category = {
        category: (*profile, 0.0, 0.0, 0.0, category_number(category))
        for category, profile in v2.profile_features(request).items()
    }
    for row, candidate in zip(found, request.candidates, strict=True):
        row += by_category[candidate.category]
        if candidate.judged is not None:
            row[_JUDGED] = 2 * candidate.judged - 1
    return found


@dataclass
class Impressions:
    """A count of impressions that decays: of those before the last one, and of those at that very time.

    The two are apart so that a request that is sent again sees what it saw the first time. Impressions may be added in
    any order.
    """

    before: float = 0.0
    at_last: int = 0
    last_ms: int = 0

    def add(self, at_ms: int) -> None:
        if at_ms > self.last_ms or not self.at_last:
            self.before, self.at_last, self.last_ms = self.count(at_ms), 1, at_ms
        elif at_ms == self.last_ms:
            self.at_last += 1
        else:
            self.before += math.exp((at_ms - self.last_ms) / _FADES_AFTER_MS)

    def count(self, at_ms: int) -> float:
        """Return the count just before this time."""
        since_ms = at_ms - self.last_ms
        if since_ms <= 0:
            return self.before
        return (self.before + self.at_last) * math.exp(-since_ms / _FADES_AFTER_MS)


class Shown:
    """What one user was shown: the categories in the order in which they were met, and the impressions of each."""

    def __init__(self) -> None:
        self._names: list[str | None] = []  # by slot; None: all others
        self.impressions: list[Impressions] = []
        self._slots: dict[float, int] = {}

    def met(self) -> list[tuple[int, str | None]]:
        """Return slot and name of what was shown so far; None names all categories beyond the first 32."""
        return list(enumerate(self._names))

    def slot(self, category: float) -> int:
        """Return the slot of a category, given by its `category_number`; of one that was not met yet, the next."""
        slot = self._slots.get(category)
        return min(len(self._names), MOST_CATEGORIES) if slot is None else slot

    def meet(self, name: str | None) -> Impressions:
        """Add a slot for a category, or, after 32 of them, for all others."""
        if name is not None:
            self._slots[category_number(name)] = len(self._names)
        self._names.append(name)
        self.impressions.append(Impressions())
        return self.impressions[-1]

    def add(self, category: str, at_ms: int) -> None:
        slot = self.slot(category_number(category))
        if slot < len(self._names):
            self.impressions[slot].add(at_ms)
        else:
            self.meet(category if slot < MOST_CATEGORIES else None).add(at_ms)

    def tiredness(self, slot: int, at_ms: int) -> float:
        """Return how tired the user is of a slot's category at this time, from 0 to 1."""
        if slot >= len(self.impressions):
            return 0.0
        count = self.impressions[slot].count(at_ms)
        return count / _VERY_TIRED if count < _VERY_TIRED else 1.0


def fill_in(
    rows: list[list[float]], request: Request, shown: Shown, tips: Mapping[str, float], at_ms: int
) -> list[int]:
    """Fill in what the request does not tell, from what was shown and what tips earned; return each row's slot."""
    found: dict[float, tuple[int, float]] = {}  # category → slot, tiredness
    slots = []
    for row in rows:
        category = row[CATEGORY]
        if category not in found:
            slot = shown.slot(category)
            found[category] = slot, shown.tiredness(slot, at_ms)
        slot, row[_TIREDNESS] = found[category]
        slots.append(slot)
    if tips:
        for row, candidate in zip(rows, request.candidates, strict=True):
            row[_TIP_REWARD] = tips.get(candidate.id, 0.0)
    return slots


V3 = Features("v3", NAMES, rows)
