"""The decision log as rounds that can be replayed: a request, what was chosen and how likely that was, and its reward.

The log is read twice. First events are brought together and where each decision stands is kept, then decisions are read
where they stand, one at a time: so memory does not depend on how many candidates there were.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from tipbench.recommender.log.decisions import Events, taken
from tipbench.recommender.log.segmented_log import of_another_kind, segments
from tipbench.recommender.records import Request

Wanted = NDArray[np.bool_]
_NO_DECISION, _NO_CHANCE, _NO_CHOICE, _USABLE = range(4)
_ROUNDING = 1e-9


class Round(NamedTuple):
    place: int  # in the columns
    user: int
    request: Request
    chosen: int  # a place among the candidates
    propensity: float
    reward: float


@dataclass(frozen=True)
class LeftOut:
    """Events that can't be replayed, each counted once, by the first reason that holds."""

    no_decision: int = 0  # rewards whose decisions are not in the log any more
    no_chance: int = 0  # not every candidate had one, as with LinUCB: weights can't be told
    no_choice: int = 0  # there was one candidate, and any policy would have chosen it
    no_reward: int = 0


@dataclass(frozen=True)
class Rounds:
    """A place in the columns is a round."""

    users: NDArray[np.intp]  # by number
    decided_ms: NDArray[np.int64]
    read: Callable[[Wanted], Iterator[Round]]  # the wanted ones, in any order
    left_out: LeftOut = LeftOut()

    def __len__(self) -> int:
        return len(self.users)


def rounds_of(folder: Path) -> Rounds:
    """Of a decision log; none where there is no log."""
    index, paths = _Index(), segments(folder)
    for number, path in enumerate(paths):
        index.file, index.start = number, 0
        for end in taken(index, path):
            index.start = end
    return index.rounds(paths)


class _Index(Events):
    """With where each decision stands."""

    def __init__(self) -> None:
        super().__init__()
        self.file = self.start = 0  # of what is taken now
        self._file = array("i")
        self._start = array("q")
        self._kind = array("b")

    def rounds(self, paths: Sequence[Path]) -> Rounds:
        kind, reward = np.array(self._kind), np.array(self._reward)
        usable = (kind == _USABLE) & ~np.isnan(reward)
        users = np.array(self._user, dtype=np.intp)[usable]
        places = _Places(paths, np.array(self._file)[usable], np.array(self._start)[usable], users, reward[usable])
        left_out = LeftOut(
            no_decision=int((kind == _NO_DECISION).sum()),
            no_chance=int((kind == _NO_CHANCE).sum()),
            no_choice=int((kind == _NO_CHOICE).sum()),
            no_reward=int(((kind == _USABLE) & np.isnan(reward)).sum()),
        )
        return Rounds(users, np.array(self._decided_ms, dtype=np.int64)[usable], places.read, left_out)

    def _add_place(self) -> None:
        self._file.append(-1)
        self._start.append(-1)
        self._kind.append(_NO_DECISION)

    def _set_decision(self, place: int, entry: Mapping[str, Any]) -> None:
        self._file[place], self._start[place] = self.file, self.start
        self._kind[place] = _kind(entry)


def _kind(entry: Mapping[str, Any]) -> int:
    if not entry["epsilon"] > 0:
        return _NO_CHANCE
    return _USABLE if len(entry["request"]["candidates"]) > 1 else _NO_CHOICE


@dataclass(frozen=True)
class _Places:
    paths: Sequence[Path]
    file: NDArray[np.int32]
    start: NDArray[np.int64]
    users: NDArray[np.intp]
    rewards: NDArray[np.float64]

    def read(self, wanted: Wanted) -> Iterator[Round]:
        """File by file, from the beginning of each to its end."""
        for number, path in enumerate(self.paths):
            places = np.flatnonzero(wanted & (self.file == number))
            with path.open("rb") as lines:
                for place in places[self.start[places].argsort()].tolist():
                    lines.seek(self.start[place])
                    try:
                        yield self._round(place, from_json(lines.readline()))
                    except (KeyError, TypeError, ValueError) as error:
                        raise of_another_kind(path, error) from error

    def _round(self, place: int, entry: Mapping[str, Any]) -> Round:
        request = Request.model_validate(entry["request"])
        chosen = [candidate.id for candidate in request.candidates].index(entry["chosen"])
        propensity = float(entry["propensity"])
        if not 0 < propensity <= 1 + _ROUNDING:
            raise ValueError(f"a choice with the propensity {propensity}")
        return Round(place, int(self.users[place]), request, chosen, propensity, float(self.rewards[place]))
