"""The decision log: everything that was served, with what it was chosen from, and what came of it.

What a replay needs stands in it: the request as it came, so that any version of the features can be made of it, and
how likely each candidate was. A line is written before the state is, so an event may be there twice, when a process was
killed between the two: the last decision is the one that was answered, and a reward counts once.
"""

import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from math import nan
from pathlib import Path
from typing import Any

from tipbench.core.untrusted import shown
from tipbench.recommender.log.segmented_log import SegmentLog, entries_of, of_another_kind, segments
from tipbench.recommender.policies.interface import Choice, Policy
from tipbench.recommender.records import Request, Reward

SCHEMA = 1
_LONG_AGO = -1
_END_OF_TIME_MS = 2**63  # of the columns


class DecisionLog:
    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._log = SegmentLog(folder, clock)
        self._clock = clock

    def decided(self, policy: Policy[Any], request: Request, choice: Choice, n: int) -> None:
        self._append(
            "decision",
            policy=policy.name,
            feature_version=policy.features.version,
            parameters=policy.parameters,
            n=n,
            epsilon=choice.epsilon,
            chosen=request.candidates[choice.place].id,
            propensity=choice.propensity,
            scores=choice.scores.tolist(),
            propensities=choice.propensities.tolist(),
            request=request,
        )

    def rewarded(self, policy: str, reward: Reward, learned: bool) -> None:
        self._append("reward", policy=policy, learned=learned, **dict(reward))

    def reset(self, user_id: str, policies: list[str]) -> None:
        self._append("reset", user_id=user_id, policies=policies)

    def close(self) -> None:
        self._log.close()

    def _append(self, kind: str, **entry: Any) -> None:
        self._log.append({"schema": SCHEMA, "kind": kind, "at_ms": round(self._clock() * 1000), **entry})


# Decisions and rewards of the log, brought together event by event.
#
# A reward may be read before its decision: each process has files of its own. A decision that is there twice, after a
# kill, counts as it was answered, which is the last time; so does a reward. Of an event some 200 bytes are kept,
# whatever its candidates were.


class Events:
    """Columns that grow, a place an event. Whoever needs more of a decision adds columns."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._users: dict[str, int] = {}
        self._user = array("i")
        self._reward = array("d")  # nan: none came
        self._decided_ms = array("q")
        self._rewarded_ms = array("q")

    def take(self, entry: Mapping[str, Any]) -> None:
        if entry["schema"] != SCHEMA:
            raise ValueError(f"schema {shown(entry['schema'])}, and {SCHEMA} is known here")
        if entry["kind"] == "decision":
            self._decided(entry, entry["request"])
        elif entry["kind"] == "reward":
            self._rewarded(entry)

    def _add_place(self) -> None:
        """One more event, of which no decision was read yet."""
        raise NotImplementedError

    def _set_decision(self, place: int, entry: Mapping[str, Any]) -> None:
        """What counts of the last decision that was read."""
        raise NotImplementedError

    def _decided(self, entry: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        place = self._place(entry["policy"], request["user_id"], request["event_id"])
        at_ms = _at_ms(entry)
        if at_ms >= self._decided_ms[place]:
            self._set_decision(place, entry)
            self._decided_ms[place] = at_ms

    def _rewarded(self, entry: Mapping[str, Any]) -> None:
        place = self._place(entry["policy"], entry["user_id"], entry["event_id"])
        at_ms, reward = _at_ms(entry), entry["reward"]
        if not -1 <= reward <= 1:
            raise ValueError(f"a reward of {shown(reward)}")
        if at_ms >= self._rewarded_ms[place]:
            self._rewarded_ms[place] = at_ms
            self._reward[place] = reward

    def _place(self, policy: str, user_id: str, event_id: str) -> int:
        key = blake2b(f"{policy}\n{user_id}\n{event_id}".encode(), digest_size=16).digest()
        place = self._places.setdefault(key, len(self._places))
        if place == len(self._user):
            self._user.append(self._users.setdefault(user_id, len(self._users)))
            self._reward.append(nan)
            self._decided_ms.append(_LONG_AGO)
            self._rewarded_ms.append(_LONG_AGO)
            self._add_place()
        return place


def _at_ms(entry: Mapping[str, Any]) -> int:
    at_ms: int = entry["at_ms"]
    if not 0 <= at_ms < _END_OF_TIME_MS:
        raise ValueError(f"a moment of {shown(at_ms)} ms")
    return at_ms


def taken(events: Events, path: Path, start: int = 0) -> Iterator[int]:
    """Takes a file's entries from there on, and says after each where it ends."""
    for end, entry in entries_of(path, start):
        try:
            events.take(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise of_another_kind(path, error) from error
        yield end


# Reads a log that only grows, again and again: each time on from where it was.


class LogTailer(ABC):
    """Safe to be asked by many threads, if they take `_turn` for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = threading.Lock()
        self._ends: dict[str, int] = {}  # how far each file was read
        self._begin()

    def _read_on(self) -> None:
        found = segments(self._folder)
        if not self._ends.keys() <= {path.name for path in found}:  # somebody took a file away
            self._ends = {}
            self._begin()
        for path in found:
            self._read(path)

    @abstractmethod
    def _begin(self) -> None:
        """Knows nothing yet."""

    @abstractmethod
    def _read(self, path: Path) -> None:
        """Takes in what was added to this file, and remembers in `_ends` where that ends."""
