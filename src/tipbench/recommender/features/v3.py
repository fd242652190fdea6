"""Version 3: version 2, the category itself, how tired the user is of it, and what is known about the tip.

A request alone does not tell all of it. Tiredness comes from what was shown to the user before, and a tip's earned
reward from the population prior's file, so both are 0 here and filled in by the policy. The last number names the
category; the policy gives each category that a user has met an intercept of its own. Formulas and rationale:
docs/decisions/0012.
"""

import math
from collections.abc import Mapping, Sequence

from tipbench.recommender.features import v2
from tipbench.recommender.features.interface import Features, category_number
from tipbench.recommender.records import Request

NAMES = (*v2.NAMES, "tiredness", "judged", "tip_reward", "category")
DENSE = len(NAMES) - 1  # numbers that are regressed on as they are
_TIREDNESS, _TIP_REWARD, CATEGORY = (NAMES.index(name) for name in ("tiredness", "tip_reward", "category"))
MOST_CATEGORIES = 32  # of one user; all others share an intercept and a tiredness
_FADES_AFTER_MS = 24 * 3_600_000
_VERY_TIRED = 4.0  # impressions within a day


def rows(request: Request) -> list[list[float]]:
    found = v2.rows(request)
    for row, candidate in zip(found, request.candidates, strict=True):
        judged = candidate.judged
        row += (0.0, 0.0 if judged is None else 2 * judged - 1, 0.0, category_number(candidate.category))
    return found


class Shown:
    """What one user was shown: the categories in the order in which they were met, and a decaying count of each.

    A count is stored as it was just before the category's last impression. So a request that is sent again sees what it
    saw the first time, and impressions may be recorded in any order.
    """

    OTHERS = MOST_CATEGORIES  # slot that all further categories share
    NEVER = MOST_CATEGORIES + 1  # slot of a category that was not met yet

    def __init__(self, met: Sequence[tuple[str, float, int]] = (), others: tuple[float, int] = (0.0, 0)) -> None:
        """`met` holds name, count and last time of each category, and `others` count and last time of all others."""
        self.names = [name for name, _, _ in met]
        self.counts = [*(count for _, count, _ in met), *[0.0] * (MOST_CATEGORIES - len(met)), others[0]]
        self.last_ms = [*(last for _, _, last in met), *[0] * (MOST_CATEGORIES - len(met)), others[1]]
        self._slots = {category_number(name): slot for slot, name in enumerate(self.names)}

    def met(self) -> list[tuple[int, str | None]]:
        """Return slot and name of what was shown so far; None names all categories beyond the first 32."""
        others = [(self.OTHERS, None)] if self.last_ms[self.OTHERS] else []
        return [*enumerate(self.names), *others]

    def slot(self, category: float) -> int:
        """Return the slot of a category, given by its `category_number`."""
        return self._slots.get(category, self.NEVER if len(self.names) < MOST_CATEGORIES else self.OTHERS)

    def add(self, category: str, at_ms: int) -> None:
        slot = self.slot(category_number(category))
        if slot == self.NEVER:
            slot = self._slots[category_number(category)] = len(self.names)
            self.names.append(category)
        last = self.last_ms[slot]
        if not last:
            self.last_ms[slot] = at_ms
        elif at_ms > last:
            self.counts[slot] = (self.counts[slot] + 1) * _faded(at_ms - last)
            self.last_ms[slot] = at_ms
        else:
            self.counts[slot] += _faded(last - at_ms)

    def tiredness(self, slot: int, at_ms: int) -> float:
        """Return how tired the user is of a slot's category at this time, from 0 to 1."""
        if slot == self.NEVER or not self.last_ms[slot]:
            return 0.0
        count, since_ms = self.counts[slot], at_ms - self.last_ms[slot]
        if since_ms > 0:
            count = (count + 1) * _faded(since_ms)
        return min(1.0, count / _VERY_TIRED)


def fill_in(
    rows: list[list[float]], request: Request, shown: Shown, tips: Mapping[str, float], at_ms: int
) -> list[int]:
    """Fill in what the request does not tell, from what was shown and what tips earned; return each row's slot."""
    slots = [shown.slot(row[CATEGORY]) for row in rows]
    tiredness = {slot: shown.tiredness(slot, at_ms) for slot in set(slots)}
    for row, slot, candidate in zip(rows, slots, request.candidates, strict=True):
        row[_TIREDNESS] = tiredness[slot]
        row[_TIP_REWARD] = tips.get(candidate.id, 0.0)
    return slots


def _faded(ms: int) -> float:
    return math.exp(-ms / _FADES_AFTER_MS)


V3 = Features("v3", NAMES, rows)
