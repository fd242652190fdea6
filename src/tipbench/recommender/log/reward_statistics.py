"""What the served texts earned, from the log of decisions and rewards.

Resets change what a policy knows, and nothing of what a user did.
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
from tipbench.recommender.log.decisions import Events, LogTailer, taken
from tipbench.recommender.records import Source

_NOT_SERVED, _NO_SOURCE = -2, -1
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RewardStatistics:
    """A place in the columns is something that was served."""

    sources: tuple[Source, ...]
    source: NDArray[np.int32]  # a place among the sources; -1: it named none
    user: NDArray[np.int32]  # users by number
    reward: NDArray[np.float64]  # nan: none came
    propensity: NDArray[np.float64]  # nan: not every candidate had a chance, so that it can't be weighted
    rewards_alone: int  # whose decisions are not in this log

    @property
    def without_source(self) -> int:
        return int((self.source == _NO_SOURCE).sum())


class RewardStatisticsReader(LogTailer):
    """Safe to be asked by many threads."""

    def read(self) -> RewardStatistics:
        """All that is in the log by now; nothing where there is no log."""
        with self._turn:
            self._read_on()
            return self._events.earnings()

    def _begin(self) -> None:
        self._events = _Events()

    def _read(self, path: Path) -> None:
        for end in taken(self._events, path, self._ends.get(path.name, 0)):
            self._ends[path.name] = end


class _Events(Events):
    """With where the chosen one came from, and how likely it was."""

    def __init__(self) -> None:
        super().__init__()
        self._sources: dict[tuple[str, str], int] = {}
        self._source = array("i")
        self._propensity = array("d")

    def earnings(self) -> RewardStatistics:
        source = np.array(self._source, dtype=np.int32)
        served = source != _NOT_SERVED
        return RewardStatistics(
            sources=tuple(Source(run_id=run_id, cell=cell) for run_id, cell in self._sources),
            source=source[served],
            user=np.array(self._user, dtype=np.int32)[served],
            reward=np.array(self._reward)[served],
            propensity=np.array(self._propensity)[served],
            rewards_alone=int((~served).sum()),
        )

    def _add_place(self) -> None:
        self._source.append(_NOT_SERVED)
        self._propensity.append(nan)

    def _set_decision(self, place: int, entry: Mapping[str, Any]) -> None:
        [source] = [one["source"] for one in entry["request"]["candidates"] if one["id"] == entry["chosen"]]
        self._source[place] = self._source_number(source)
        self._propensity[place] = _weighable(entry["propensity"]) if entry["epsilon"] > 0 else nan

    def _source_number(self, source: Mapping[str, str] | None) -> int:
        if source is None:
            return _NO_SOURCE
        return self._sources.setdefault((source["run_id"], source["cell"]), len(self._sources))


def _weighable(propensity: float) -> float:
    if not 0 < propensity <= 1 + _ROUNDING:
        raise ValueError(f"a choice with the propensity {shown(propensity)}")
    return min(propensity, 1.0)
