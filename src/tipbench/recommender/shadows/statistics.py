"""How shadows did, shadow by shadow and day by day: read from the signals that they published.

That a shadow agrees with what was served says nothing about how good it is: it says that the shadow runs, how quickly,
and what it is told about users.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tipbench.core.untrusted import shown
from tipbench.recommender.features import v1
from tipbench.recommender.log.decisions import LogTailer
from tipbench.recommender.log.segmented_log import entries_of, of_another_kind
from tipbench.recommender.shadows.runner import SCHEMA

DAY_MS = 86_400_000
_PREFIX, _COUNTS = "shadow:", ":counts"
_REASONS = ("full", "late", "failed")


@dataclass(frozen=True)
class ShadowDay:
    """One day of one shadow, by UTC."""

    shadow: str
    day_ms: int  # its beginning
    signals: int
    agreed: int  # with what was served
    by_chance: float  # share that would agree if both chose blindly: the mean of 1/K over K candidates
    dropped: Mapping[str, int]  # by reason
    latency_ms: float  # the median
    latency_95_ms: float
    profile_dimensions: int  # of the features, those that are about the user's past; 0: there are none
    neutral: float  # how many of them were neutral for all candidates, on average: nothing was known

    @property
    def agreement(self) -> float | None:
        return self.agreed / self.signals if self.signals else None

    @property
    def offered(self) -> int:
        return self.signals + sum(self.dropped.values())


class ShadowStatisticsReader(LogTailer):
    """Safe to be asked by many threads."""

    def read(self) -> list[ShadowDay]:
        """The newest day first; nothing where there are no signals."""
        with self._turn:
            self._read_on()
            days = sorted(self._days.items(), key=lambda item: (-item[0][1], item[0][0]))
            return [day.told(shadow, number) for (shadow, number), day in days]

    def _begin(self) -> None:
        self._days: dict[tuple[str, int], _Day] = {}
        self._dropped: dict[tuple[str, str], dict[str, int]] = {}  # by a process's shadow, since the process began

    def _read(self, path: Path) -> None:
        process, _, number = path.stem.rpartition("-")
        process = process.rpartition("-")[2]
        if path.name not in self._ends and number == "0001":  # another process that has this number
            self._dropped = {key: told for key, told in self._dropped.items() if key[0] != process}
        for end, entry in entries_of(path, self._ends.get(path.name, 0)):
            try:
                self._take(process, entry)
            except (LookupError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
                raise of_another_kind(path, error) from error
            self._ends[path.name] = end

    def _take(self, process: str, entry: Mapping[str, Any]) -> None:
        if entry["schema"] != SCHEMA:
            raise ValueError(f"schema {shown(entry['schema'])}, and {SCHEMA} is known here")
        name = entry["signal"]
        if not name.startswith(_PREFIX):
            return
        shadow = name.removeprefix(_PREFIX).removesuffix(_COUNTS)
        day = self._days.setdefault((shadow, entry["at_ms"] // DAY_MS), _Day())
        self._count_drops(day, process, shadow, entry["counts"]["dropped"])
        if not name.endswith(_COUNTS):
            day.take(entry)

    def _count_drops(self, day: "_Day", process: str, shadow: str, dropped: Mapping[str, int]) -> None:
        before = self._dropped.get((process, shadow), {})
        now = {reason: dropped[reason] for reason in _REASONS}
        for reason in _REASONS:
            day.dropped[reason] += max(0, now[reason] - before.get(reason, 0))
        self._dropped[process, shadow] = now


@dataclass
class _Day:
    """Sums that grow."""

    agreed: int = 0
    chance: float = 0.0
    neutral: int = 0
    dimensions: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_REASONS, 0))
    latencies: "array[float]" = field(default_factory=lambda: array("f"))

    def take(self, entry: Mapping[str, Any]) -> None:
        names, rows = entry["features"]["names"], entry["features"]["rows"]
        of_profile = [place for place, name in enumerate(names) if name not in v1.NAMES]
        neutral = sum(all(row[place] == 0 for row in rows) for place in of_profile)
        chance, latency = 1 / len(entry["candidates"]), float(entry["latency_ms"])
        self.agreed += bool(entry["agrees"])
        self.chance += chance
        self.neutral += neutral
        self.dimensions = max(self.dimensions, len(of_profile))
        self.latencies.append(latency)

    def told(self, shadow: str, number: int) -> ShadowDay:
        signals = len(self.latencies)
        median, slow = np.percentile(self.latencies, (50, 95)) if signals else (0.0, 0.0)
        return ShadowDay(
            shadow=shadow,
            day_ms=number * DAY_MS,
            signals=signals,
            agreed=self.agreed,
            by_chance=self.chance / max(1, signals),
            dropped=dict(self.dropped),
            latency_ms=float(median),
            latency_95_ms=float(slow),
            profile_dimensions=self.dimensions,
            neutral=self.neutral / max(1, signals),
        )
