"""Statistics on shadows, by shadow and day, read from the signals they published.

A shadow's agreement with what was served says nothing about its quality. The statistics show that the shadow runs, how
fast, and how much it knows about users.
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
from tipbench.recommender.log.segmented_log import process_and_number, read_entries, wrong_kind_error
from tipbench.recommender.shadows.runner import SCHEMA

DAY_MS = 86_400_000
_PREFIX, _COUNTS = "shadow:", ":counts"
_REASONS = ("full", "late", "failed")


@dataclass(frozen=True)
class ShadowDay:
    """One shadow on one day (UTC)."""

    shadow: str
    day_ms: int  # start of the day
    signals: int
    agreed: int  # with what was served
    by_chance: float  # expected agreement of random choices: the mean of 1/K over K candidates
    dropped: Mapping[str, int]  # by reason
    latency_ms: float  # the median
    latency_95_ms: float
    profile_dimensions: int  # number of features about the user's past; 0: it has none
    neutral: float  # mean number of them that were neutral for all candidates, as nothing was known

    @property
    def agreement(self) -> float | None:
        return self.agreed / self.signals if self.signals else None

    @property
    def offered(self) -> int:
        return self.signals + sum(self.dropped.values())


class ShadowStatisticsReader(LogTailer):
    """Reads shadow statistics from the signals, incrementally. Thread-safe."""

    def read(self) -> list[ShadowDay]:
        """Return all days, newest first; empty if there are no signals."""
        with self._lock:
            self._read_new()
            days = sorted(self._days.items(), key=lambda item: (-item[0][1], item[0][0]))
            return [day.summary(shadow, number) for (shadow, number), day in days]

    def _reset(self) -> None:
        self._days: dict[tuple[str, int], _Day] = {}
        self._dropped: dict[tuple[str, str], dict[str, int]] = {}  # by process and shadow, since the process started

    def _read_segment(self, path: Path) -> None:
        process, number = process_and_number(path)
        if path.name not in self._offsets and number == "0001":  # a new process that reuses this pid
            self._dropped = {key: dropped for key, dropped in self._dropped.items() if key[0] != process}
        for end, entry in read_entries(path, self._offsets.get(path.name, 0)):
            try:
                self._add_entry(process, entry)
            except (LookupError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
                raise wrong_kind_error(path, error) from error
            self._offsets[path.name] = end

    def _add_entry(self, process: str, entry: Mapping[str, Any]) -> None:
        if entry["schema"] != SCHEMA:
            raise ValueError(f"schema {shown(entry['schema'])}, and {SCHEMA} is known here")
        name = entry["signal"]
        if not name.startswith(_PREFIX):
            return
        shadow = name.removeprefix(_PREFIX).removesuffix(_COUNTS)
        day = self._days.setdefault((shadow, entry["at_ms"] // DAY_MS), _Day())
        self._count_drops(day, (process, shadow), entry["counts"])
        if not name.endswith(_COUNTS):
            day.add(entry)

    def _count_drops(self, day: "_Day", source: tuple[str, str], counts: Mapping[str, Any]) -> None:
        """Add what was dropped since the process's signal before; if that is gone from the log, nobody knows when."""
        now = {reason: counts["dropped"][reason] for reason in _REASONS}
        before = self._dropped.get(source, now if counts["published"] else {})
        for reason in _REASONS:
            day.dropped[reason] += max(0, now[reason] - before.get(reason, 0))
        self._dropped[source] = now


@dataclass
class _Day:
    """Running sums of one day."""

    agreed: int = 0
    chance: float = 0.0
    neutral: int = 0
    dimensions: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_REASONS, 0))
    latencies: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, entry: Mapping[str, Any]) -> None:
        names, rows = entry["features"]["names"], entry["features"]["rows"]
        profile_indexes = [index for index, name in enumerate(names) if name not in v1.NAMES]
        neutral = sum(all(row[index] == 0 for row in rows) for index in profile_indexes)
        chance, latency = 1 / len(entry["candidates"]), float(entry["latency_ms"])
        self.agreed += bool(entry["agrees"])
        self.chance += chance
        self.neutral += neutral
        self.dimensions = max(self.dimensions, len(profile_indexes))
        self.latencies.append(latency)

    def summary(self, shadow: str, number: int) -> ShadowDay:
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
