"""The decision log: every choice that was served, the candidates it was made from, and its reward.

It holds what a replay needs: the original request, from which any version of the features can be computed, and the
propensity of every candidate. A line is written before the state is stored, so an event may appear twice if the process
was killed in between: the last decision is the one that was answered, and a reward counts once.
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
from tipbench.recommender.log.segmented_log import SegmentLog, read_entries, segments, wrong_kind_error
from tipbench.recommender.policies.interface import Choice, Policy
from tipbench.recommender.records import Request, Reward

SCHEMA = 1
_NEVER = -1
_MAX_MS = 2**63  # what the int64 columns can hold


class DecisionLog:
    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._log = SegmentLog(folder, clock)
        self._clock = clock

    def log_decision(self, policy: Policy[Any], request: Request, choice: Choice, n: int, at_ms: int) -> None:
        """`at_ms` is the event's time, by which policies forget: a replay has to see the same."""
        self._append(
            "decision",
            at_ms,
            policy=policy.name,
            feature_version=policy.features.version,
            parameters=policy.parameters,
            n=n,
            epsilon=choice.epsilon,
            chosen=request.candidates[choice.position].id,
            propensity=choice.propensity,
            scores=choice.scores.tolist(),
            propensities=choice.propensities.tolist(),
            request=request,
        )

    def log_reward(self, policy: str, reward: Reward, learned: bool) -> None:
        self._append("reward", self._now_ms, policy=policy, learned=learned, **dict(reward))

    def log_reset(self, user_id: str, policies: list[str]) -> None:
        self._append("reset", self._now_ms, user_id=user_id, policies=policies)

    def close(self) -> None:
        self._log.close()

    def _append(self, kind: str, at_ms: int, **entry: Any) -> None:
        self._log.append({"schema": SCHEMA, "kind": kind, "at_ms": at_ms, **entry})

    @property
    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


# Joining decisions and rewards by event.
#
# A reward may be read before its decision, because each process writes its own files. Of a decision that was logged
# twice, after a kill, the last one counts, because that is the one that was answered; the same holds for rewards. An
# event takes some 200 bytes of memory, however many candidates it had.


class Events:
    """Growing columns with one row per event. Subclasses add columns for whatever else they need of a decision."""

    def __init__(self) -> None:
        self._rows: dict[bytes, int] = {}
        self._users: dict[str, int] = {}
        self._user = array("i")
        self._reward = array("d")  # nan: none received
        self._decided_ms = array("q")
        self._rewarded_ms = array("q")
        self._reset_ms: dict[int, int] = {}  # last reset, by user

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add an entry of the log; raise ValueError, KeyError or TypeError if it is malformed."""
        if entry["schema"] != SCHEMA:
            raise ValueError(f"schema {shown(entry['schema'])}, and {SCHEMA} is known here")
        if entry["kind"] == "decision":
            self._add_decision(entry, entry["request"])
        elif entry["kind"] == "reward":
            self._add_reward(entry)
        elif entry["kind"] == "reset":
            user = self._user_number(entry["user_id"])
            self._reset_ms[user] = max(self._reset_ms.get(user, _NEVER), _at_ms(entry))

    def _add_row(self) -> None:
        """Append a row to the subclass's columns, for an event whose decision has not been read yet."""
        raise NotImplementedError

    def _set_decision(self, row: int, entry: Mapping[str, Any]) -> None:
        """Set the subclass's columns of a row from its latest decision."""
        raise NotImplementedError

    def _add_decision(self, entry: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        row = self._row(entry["policy"], request["user_id"], request["event_id"])
        at_ms = _at_ms(entry)
        if at_ms >= self._decided_ms[row]:
            self._set_decision(row, entry)
            self._decided_ms[row] = at_ms

    def _add_reward(self, entry: Mapping[str, Any]) -> None:
        row = self._row(entry["policy"], entry["user_id"], entry["event_id"])
        at_ms, reward = _at_ms(entry), entry["reward"]
        if not -1 <= reward <= 1:
            raise ValueError(f"a reward of {shown(reward)}")
        if at_ms >= self._rewarded_ms[row]:
            self._rewarded_ms[row] = at_ms
            self._reward[row] = reward

    def _row(self, policy: str, user_id: str, event_id: str) -> int:
        key = blake2b(f"{policy}\n{user_id}\n{event_id}".encode(), digest_size=16).digest()
        row = self._rows.setdefault(key, len(self._rows))
        if row == len(self._user):
            self._user.append(self._user_number(user_id))
            self._reward.append(nan)
            self._decided_ms.append(_NEVER)
            self._rewarded_ms.append(_NEVER)
            self._add_row()
        return row

    def _user_number(self, user_id: str) -> int:
        return self._users.setdefault(user_id, len(self._users))


def _at_ms(entry: Mapping[str, Any]) -> int:
    at_ms: int = entry["at_ms"]
    if not 0 <= at_ms < _MAX_MS:
        raise ValueError(f"a moment of {shown(at_ms)} ms")
    return at_ms


def load_segment(events: Events, path: Path, start: int = 0) -> Iterator[int]:
    """Add a segment's entries to the events, from byte offset `start`; yield the end offset of each entry.

    Raises StateDamaged for a line that is not an entry of a decision log.
    """
    for end, entry in read_entries(path, start):
        try:
            events.add(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise wrong_kind_error(path, error) from error
        yield end


# Incremental reading of a growing log.


class LogTailer(ABC):
    """Base class of readers that resume where they stopped. Thread-safe as long as subclasses hold `_lock` to read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._offsets: dict[str, int] = {}  # bytes read so far, by file name
        self._reset()

    def _read_new(self) -> None:
        """Read everything added since the last call; start over if a file was removed, or rewritten."""
        while True:
            found = segments(self._folder)
            if not self._offsets.keys() <= {path.name for path in found}:
                self._offsets = {}
                self._reset()
            try:
                for path in found:
                    self._read_segment(path)
                return
            except FileNotFoundError:
                if segments(self._folder) == found:
                    raise

    @abstractmethod
    def _reset(self) -> None:
        """Discard everything read so far."""

    @abstractmethod
    def _read_segment(self, path: Path) -> None:
        """Read what was added to this file, and record the new offset in `_offsets`."""
