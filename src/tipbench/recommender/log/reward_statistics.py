"""Rewards of the served texts, read from the decision log.

Resets are ignored: they change what a policy knows, not what a user did.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.core.untrusted import shown
from tipbench.recommender.log.decisions import Events, LogTailer, load_segment
from tipbench.recommender.records import Source

_NOT_SERVED, _NO_SOURCE = -2, -1
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RewardStatistics:
    """Columns with one row per served event."""

    sources: tuple[Source, ...]
    source: NDArray[np.int32]  # index into `sources`; -1: the candidate named none
    user: NDArray[np.int32]  # a number per user
    reward: NDArray[np.float64]  # nan: none received
    propensity: NDArray[np.float64]  # nan: can't be weighted, because some candidates had no chance
    rewards_without_decision: int  # rewards whose decisions are not in this log

    @property
    def without_source(self) -> int:
        return int((self.source == _NO_SOURCE).sum())


class RewardStatisticsReader(LogTailer):
    """Reads reward statistics from a decision log, incrementally. Thread-safe."""

    def read(self) -> RewardStatistics:
        """Return the statistics of the whole log up to now; empty if there is no log."""
        with self._lock:
            self._read_new()
            return self._events.statistics()

    def _reset(self) -> None:
        self._events = _Events()

    def _read_segment(self, path: Path) -> None:
        for end in load_segment(self._events, path, self._offsets.get(path.name, 0)):
            self._offsets[path.name] = end


class _Events(Events):
    """Events with the source and the propensity of the chosen candidate."""

    def __init__(self) -> None:
        super().__init__()
        self._sources: dict[tuple[str, str], int] = {}
        self._source = array("i")
        self._propensity = array("d")

    def statistics(self) -> RewardStatistics:
        source = np.array(self._source, dtype=np.int32)
        served = source != _NOT_SERVED
        return RewardStatistics(
            sources=tuple(Source(run_id=run_id, cell=cell) for run_id, cell in self._sources),
            source=source[served],
            user=np.array(self._user, dtype=np.int32)[served],
            reward=np.array(self._reward)[served],
            propensity=np.array(self._propensity)[served],
            rewards_without_decision=int((~served).sum()),
        )

    def _add_row(self) -> None:
        self._source.append(_NOT_SERVED)
        self._propensity.append(nan)

    def _set_decision(self, row: int, entry: Mapping[str, Any]) -> None:
        [source] = [one["source"] for one in entry["request"]["candidates"] if one["id"] == entry["chosen"]]
        self._source[row] = self._source_number(source)
        self._propensity[row] = _check_propensity(entry["propensity"]) if entry["epsilon"] > 0 else nan

    def _source_number(self, source: Mapping[str, str] | None) -> int:
        if source is None:
            return _NO_SOURCE
        return self._sources.setdefault((source["run_id"], source["cell"]), len(self._sources))


def _check_propensity(propensity: float) -> float:
    if not 0 < propensity <= 1 + _ROUNDING:
        raise ValueError(f"a choice with the propensity {shown(propensity)}")
    return min(propensity, 1.0)
