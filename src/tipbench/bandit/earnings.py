"""What the served texts earned: decisions and rewards of the log, brought together event by event.

A reward may be read before its decision: each process has files of its own. A decision that is there twice, after a
kill, counts as it was answered, which is the last time; so does a reward. Resets change what a policy knows, and
nothing of what a user did. Of an event some 200 bytes are kept, whatever its candidates were.
"""

import threading
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.bandit.decisions import SCHEMA
from tipbench.bandit.records import Source
from tipbench.bandit.segments import entries_of, segments
from tipbench.errors import StateDamaged
from tipbench.untrusted import shown

_NOT_SERVED, _NO_SOURCE = -2, -1
_LONG_AGO = -1


@dataclass(frozen=True)
class Earnings:
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


def decisions_folder(home: Path) -> Path:
    """Where the service of this home writes its log."""
    return home / "recommender" / "decisions"


class EarningsReader:
    """Reads on from where it was: a log only grows. Safe to be asked by many threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = threading.Lock()
        self._begin()

    def read(self) -> Earnings:
        """All that is in the log by now; nothing where there is no log."""
        with self._turn:
            found = segments(self._folder)
            if not self._ends.keys() <= {path.name for path in found}:  # somebody took a file away
                self._begin()
            for path in found:
                self._read(path)
            return self._events.earnings()

    def _begin(self) -> None:
        self._events = _Events()
        self._ends: dict[str, int] = {}

    def _read(self, path: Path) -> None:
        for end, entry in entries_of(path, self._ends.get(path.name, 0)):
            try:
                self._events.take(entry)
            except (KeyError, TypeError, ValueError) as error:
                raise StateDamaged(
                    f"{path} holds a line of another kind of log ({error!r}); move it elsewhere, "
                    "or read it with the tipbench that wrote it"
                ) from error
            self._ends[path.name] = end


class _Events:
    """Columns that grow."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._users: dict[str, int] = {}
        self._sources: dict[tuple[str, str], int] = {}
        self._source = array("i")
        self._user = array("i")
        self._reward = array("d")
        self._propensity = array("d")
        self._decided_ms = array("q")
        self._rewarded_ms = array("q")

    def take(self, entry: Mapping[str, Any]) -> None:
        if entry["schema"] != SCHEMA:
            raise ValueError(f"schema {shown(entry['schema'])}, and {SCHEMA} is known here")
        if entry["kind"] == "decision":
            self._decided(entry, entry["request"])
        elif entry["kind"] == "reward":
            self._rewarded(entry)

    def earnings(self) -> Earnings:
        source = np.array(self._source, dtype=np.int32)
        served = source != _NOT_SERVED
        return Earnings(
            sources=tuple(Source(run_id=run_id, cell=cell) for run_id, cell in self._sources),
            source=source[served],
            user=np.array(self._user, dtype=np.int32)[served],
            reward=np.array(self._reward)[served],
            propensity=np.array(self._propensity)[served],
            rewards_alone=int((~served).sum()),
        )

    def _decided(self, entry: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        place = self._place(entry["policy"], request["user_id"], request["event_id"])
        if entry["at_ms"] < self._decided_ms[place]:
            return
        [source] = [one["source"] for one in request["candidates"] if one["id"] == entry["chosen"]]
        self._decided_ms[place] = entry["at_ms"]
        self._source[place] = self._source_number(source)
        self._propensity[place] = entry["propensity"] if entry["epsilon"] > 0 else nan

    def _rewarded(self, entry: Mapping[str, Any]) -> None:
        place = self._place(entry["policy"], entry["user_id"], entry["event_id"])
        if entry["at_ms"] >= self._rewarded_ms[place]:
            self._rewarded_ms[place] = entry["at_ms"]
            self._reward[place] = entry["reward"]

    def _place(self, policy: str, user_id: str, event_id: str) -> int:
        key = blake2b(f"{policy}\n{user_id}\n{event_id}".encode(), digest_size=16).digest()
        place = self._places.setdefault(key, len(self._places))
        if place == len(self._source):
            self._source.append(_NOT_SERVED)
            self._user.append(self._users.setdefault(user_id, len(self._users)))
            self._reward.append(nan)
            self._propensity.append(nan)
            self._decided_ms.append(_LONG_AGO)
            self._rewarded_ms.append(_LONG_AGO)
        return place

    def _source_number(self, source: Mapping[str, str] | None) -> int:
        if source is None:
            return _NO_SOURCE
        return self._sources.setdefault((source["run_id"], source["cell"]), len(self._sources))
