"""Erase a user for good: from every store, the decision log and the shadows' signals, while services run.

The log says first that the user was reset, and forgets that last: a kill in between leaves nothing of the user to the
next prior, and something for the next run to find, which then does all of it again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipbench.core.backups import finished_backups
from tipbench.core.errors import StateDamaged
from tipbench.core.paths import (
    decisions_folder,
    recommender_folder,
    server_folder,
    signals_folder,
)
from tipbench.core.text import counted
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.log.rewriting import count_lines, remove_lines
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.shadows.background import TIMEOUT_S
from tipbench.recommender.shadows.runner import SHADOWS
from tipbench.recommender.store.interface import Key, Movable
from tipbench.recommender.user_traces import Search, lines_of, search_files

_POLICIES = (*POLICIES, *SHADOWS)  # whose documents are found by name, even if they are damaged
_PASSES = 3  # a request under way may write once more


@dataclass(frozen=True)
class Traces:
    """What there is of a user."""

    states: tuple[tuple[str, int, int], ...] = ()  # by store: its address, states and events
    decisions: int = 0  # lines of the log
    signals: int = 0

    def __add__(self, other: "Traces") -> "Traces":
        return Traces(self.states + other.states, self.decisions + other.decisions, self.signals + other.signals)

    def __bool__(self) -> bool:
        return bool(self.states or self.decisions or self.signals)

    def __str__(self) -> str:
        parts = [
            f"{counted(states, 'state')} with {counted(events, 'event')} in {where}"
            for where, states, events in self.states
        ]
        parts += [f"{counted(self.decisions, 'line')} of the decision log"] if self.decisions else []
        parts += [counted(self.signals, "shadow signal")] if self.signals else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Erased:
    """What was removed, what is left in our files, and what may hold the user where we can't remove it."""

    removed: Traces
    left: Traces
    search: Search
    elsewhere: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        return not (self.left or self.search.theirs or self.search.unreadable)


class Eraser:
    """Erases users from one home and the stores that it uses. The caller holds `exclusive_logs`."""

    def __init__(self, home: Path, stores: Sequence[Movable], clock: Callable[[], float]) -> None:
        self._home = home
        self._stores = stores
        self._clock = clock
        self._decisions, self._signals = decisions_folder(home), signals_folder(home)
        databases = [store.address for store in stores if store.name != "files"]
        self.searched = " and in ".join([f"the files of {recommender_folder(home)}", *databases])

    def find(self, user_id: str, resets: bool = True) -> Traces:
        """Return what there is of a user; without `resets`, lines that only say that they were reset don't count."""
        return Traces(
            self._states(user_id),
            count_lines(self._decisions, lines_of(user_id, resets)),
            count_lines(self._signals, lines_of(user_id)),
        )

    def search(self, user_id: str) -> Search:
        """Search every file of the recommender, and those of the server's jobs, for the id."""
        jobs = (server_folder(self._home) / "jobs", server_folder(self._home) / "simulations")
        return search_files((recommender_folder(self._home), *jobs), user_id)

    def erase(self, user_id: str) -> Erased:
        """Erase a user. Raises what keeps it from being finished; started again, it goes on."""
        log = DecisionLog(self._decisions, self._clock)
        log.log_reset(user_id, list(_POLICIES))
        log.close()
        removed, elsewhere = Traces(), list[str]()
        for _ in range(_PASSES):
            removed += Traces(self._states(user_id))
            for store in self._stores:
                store.clear(user_id, {*_POLICIES, *store.policies_of(user_id)})
            elsewhere = [sentence for store in self._stores for sentence in store.purge()]
            if self._signals.exists():
                time.sleep(2 * TIMEOUT_S)  # a shadow may still choose for a request that was answered before
            signals = remove_lines(self._signals, lines_of(user_id))
            removed += Traces((), remove_lines(self._decisions, lines_of(user_id, resets=False)), signals)
            if not self.find(user_id, resets=False):
                break
        resets = remove_lines(self._decisions, lines_of(user_id))
        removed += Traces(decisions=resets - 1)  # one of them is ours
        elsewhere += [*self._priors(), *backups(self._home), "the disk: deleted files, until they are written over"]
        return Erased(removed, self.find(user_id), self.search(user_id), tuple(elsewhere))

    def _states(self, user_id: str) -> tuple[tuple[str, int, int], ...]:
        return tuple(found for store in self._stores if (found := _in_store(store, user_id))[1])

    def _priors(self) -> list[str]:
        priors = sorted({digest for store in self._stores for digest in store.priors.digests()})
        if not priors:
            return []
        return [
            f"{counted(len(priors), 'prior')} ({', '.join(priors)}): sums over all users of their time, without ids; "
            "a new one knows nothing of this user: tipbench recommend prior fit"
        ]


def _in_store(store: Movable, user_id: str) -> tuple[str, int, int]:
    """Return a store's address, and how many states and events of a user it has."""
    policies, events = store.policies_of(user_id), 0
    for policy in policies:
        try:
            events += len(store.events(Key(user_id, policy)))
        except StateDamaged:
            continue
    return store.address, len(policies), events


def backups(home: Path) -> list[str]:
    """Return a sentence on each backup of the home that is in the list of backups and still there."""
    advice = "make another one and delete it, or erase again after restoring it"
    return [f"the backup {found.path} of {found.finished_at}: {advice}" for found in finished_backups(home)]
