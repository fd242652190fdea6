"""The decision log as rounds that can be replayed: a request, the choice, its propensity and its reward.

The log is read twice: first to join the events and index the file offset of each decision, then to read the decisions
from there one at a time, in the order of time. So memory does not depend on the number of candidates.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from tipbench.core.errors import StateError
from tipbench.recommender.log.decisions import Events, load_segment
from tipbench.recommender.log.segmented_log import segments, wrong_kind_error
from tipbench.recommender.records import Request

RowMask = NDArray[np.bool_]
_NO_DECISION, _NO_CHANCE, _NO_CHOICE, _USABLE = range(4)
_ROUNDING = 1e-9
_MOST_OPEN = 200  # files


class Round(NamedTuple):
    row: int  # in the columns of `Rounds`
    user: int
    request: Request
    chosen: int  # index among the request's candidates
    propensity: float
    reward: float
    at_ms: int = 0


@dataclass(frozen=True)
class LeftOut:
    """Events that can't be replayed, each counted once, under the first reason that applies."""

    no_decision: int = 0  # rewards whose decisions are no longer in the log
    no_chance: int = 0  # some candidates could not be chosen, as with LinUCB: weights are undefined
    no_choice: int = 0  # there was only one candidate
    no_reward: int = 0


class Impressions(NamedTuple):
    """Everything that users were shown, rewarded or not, in the order of users, and of time for each."""

    users: NDArray[np.intp]
    at_ms: NDArray[np.int64]
    categories: Sequence[str]


NO_IMPRESSIONS = Impressions(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), ())


@dataclass(frozen=True)
class Rounds:
    """Columns with one row per round, and access to the rounds themselves."""

    users: NDArray[np.intp]  # a number per user
    decided_ms: NDArray[np.int64]
    read: Callable[[RowMask], Iterator[Round]]  # yields the rounds of the masked rows, in the order of time
    left_out: LeftOut = LeftOut()
    impressions: Impressions = NO_IMPRESSIONS

    def __len__(self) -> int:
        return len(self.users)


def load_rounds(folder: Path, for_weights: bool = True) -> Rounds:
    """Index the decision log in a folder; empty if there is no log.

    Without `for_weights` the rounds are all decisions with a reward, to learn from: also those that can't be weighted,
    but none from before a reset of their user.
    """
    index, paths = _Index(), segments(folder)
    for number, path in enumerate(paths):
        index.file, index.start = number, 0
        with _gone_translated(path):
            for end in load_segment(index, path):
                index.start = end
    return index.rounds(paths, for_weights)


class _Index(Events):
    """Events with the file and offset of each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.file = self.start = 0  # of the entry being added
        self._file = array("i")
        self._start = array("q")
        self._status = array("b")
        self._category = array("i")
        self._categories: dict[str, int] = {}

    def rounds(self, paths: Sequence[Path], for_weights: bool) -> Rounds:
        status, reward = np.array(self._status), np.array(self._reward)
        all_users = np.array(self._user, dtype=np.intp)
        decided_ms = np.array(self._decided_ms, dtype=np.int64)
        shown = status != _NO_DECISION
        if not for_weights:
            shown &= decided_ms > self._resets(all_users)
        usable = ((status == _USABLE) if for_weights else shown) & ~np.isnan(reward)
        users = all_users[usable]
        reader = _RoundReader(
            *(paths, np.array(self._file)[usable], np.array(self._start)[usable]),
            *(users, reward[usable], decided_ms[usable]),
        )
        left_out = LeftOut(
            no_decision=int((status == _NO_DECISION).sum()),
            no_chance=int((status == _NO_CHANCE).sum()),
            no_choice=int((status == _NO_CHOICE).sum()),
            no_reward=int(((status == _USABLE) & np.isnan(reward)).sum()),
        )
        impressions = self._impressions(all_users, decided_ms, np.flatnonzero(shown))
        return Rounds(users, decided_ms[usable], reader.read, left_out, impressions)

    def _resets(self, users: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the time of the last reset of each row's user; -1 if there was none."""
        reset_ms = np.full(len(self._users), -1, dtype=np.int64)
        for user, at_ms in self._reset_ms.items():
            reset_ms[user] = at_ms
        return reset_ms[users]

    def _impressions(
        self, users: NDArray[np.intp], decided_ms: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> Impressions:
        rows = rows[np.lexsort((decided_ms[rows], users[rows]))]
        names = list(self._categories)
        return Impressions(users[rows], decided_ms[rows], [names[self._category[row]] for row in rows.tolist()])

    def _add_row(self) -> None:
        self._file.append(-1)
        self._start.append(-1)
        self._status.append(_NO_DECISION)
        self._category.append(-1)

    def _set_decision(self, row: int, entry: Mapping[str, Any]) -> None:
        self._file[row], self._start[row] = self.file, self.start
        self._status[row] = _status(entry)
        [category] = [one["category"] for one in entry["request"]["candidates"] if one["id"] == entry["chosen"]]
        self._category[row] = self._categories.setdefault(category, len(self._categories))


def _status(entry: Mapping[str, Any]) -> int:
    if not entry["epsilon"] > 0:
        return _NO_CHANCE
    return _USABLE if len(entry["request"]["candidates"]) > 1 else _NO_CHOICE


@dataclass(frozen=True)
class _RoundReader:
    """Reads rounds from the log by file and offset."""

    paths: Sequence[Path]
    file: NDArray[np.int32]
    start: NDArray[np.int64]
    users: NDArray[np.intp]
    rewards: NDArray[np.float64]
    decided_ms: NDArray[np.int64]

    def read(self, mask: RowMask) -> Iterator[Round]:
        """Yield the masked rounds in the order of time."""
        rows = np.flatnonzero(mask)
        in_order = rows[np.lexsort((self.start[rows], self.file[rows], self.decided_ms[rows]))].tolist()
        with ExitStack() as opened:
            files: dict[int, BinaryIO] = {}  # those of several workers take turns
            for row in in_order:
                number = int(self.file[row])
                if number not in files:
                    if len(files) == _MOST_OPEN:
                        opened.close()
                        files.clear()
                    with _gone_translated(self.paths[number]):
                        files[number] = opened.enter_context(self.paths[number].open("rb"))
                files[number].seek(self.start[row])
                try:
                    yield self._round(row, from_json(files[number].readline()))
                except (KeyError, TypeError, ValueError) as error:
                    raise wrong_kind_error(self.paths[number], error) from error

    def _round(self, row: int, entry: Mapping[str, Any]) -> Round:
        request = Request.model_validate(entry["request"])
        chosen = [candidate.id for candidate in request.candidates].index(entry["chosen"])
        propensity = float(entry["propensity"])
        if not 0 < propensity <= 1 + _ROUNDING:
            raise ValueError(f"a choice with the propensity {propensity}")
        user, reward, at_ms = int(self.users[row]), float(self.rewards[row]), int(self.decided_ms[row])
        return Round(row, user, request, chosen, propensity, reward, at_ms)


@contextmanager
def _gone_translated(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StateError(f"{path} was removed or rewritten while the log was read; try again") from error
