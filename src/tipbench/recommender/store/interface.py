"""What is kept about a user with a policy, and how a store is asked for it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from tipbench.core.errors import InvalidInput, LockTaken, StateDamaged, StateRefused, StoreUnreachable
from tipbench.core.text import utc_minute
from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.promotion.interface import Promotions
from tipbench.recommender.records import Source

_USER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
PATIENCE_S = 5.0  # that somebody waits for a lock whose holder may be frozen


@dataclass(frozen=True)
class Event:
    """Something that was served, and what came of it. Its features are gone once nothing more is learned from them."""

    id: str
    scored_ms: int
    request: str  # the digest of what was asked
    chosen: str  # a candidate's id
    score: float
    propensity: float
    epsilon: float
    n: int  # rewards that were learned before
    features: tuple[float, ...] | None
    source: Source | None = None
    reward: float | None = None
    late: bool = False  # its time is over: a reward is taken note of, and nothing is learned

    @property
    def waits(self) -> bool:
        return self.reward is None and not self.late


@dataclass(frozen=True)
class UserState:
    """All but the events."""

    feature_version: str
    state: Mapping[str, Any]  # as the policy's state gives it
    duplicates: int = 0
    late: int = 0
    updated_ms: int | None = None


class Key(NamedTuple):
    user_id: str
    policy: str


def check_user_id(user_id: str) -> None:
    """The same for all stores, so that everything can be moved from one to another."""
    if not _USER_ID.fullmatch(user_id):
        raise InvalidInput(f"the user id {user_id!r} can't name a file; take up to 64 letters, digits, _ and -")


class Transaction(Protocol):
    """One user with one policy, for whoever holds it alone."""

    user_state: UserState | None  # None: nothing yet

    def event(self, event_id: str) -> Event | None: ...

    def put(self, event: Event) -> None:
        """A new one, or one that has changed."""
        ...

    def keep(self, user_state: UserState) -> None: ...


class Store(Protocol):
    """Whatever it holds is durable when it says so: after a kill, and after a power cut."""

    @property
    def promotions(self) -> Promotions:
        """Who is live for all who serve from this store."""
        ...

    def transaction(self, key: Key, event_id: str | None = None) -> AbstractContextManager[Transaction]:
        """Nobody else gets at it in the meantime. What was put and kept is stored as one when the block ends, and
        nothing of it when the block raises. The event that will be asked for may be named, to be fetched along."""
        ...

    def read_state(self, key: Key) -> UserState | None:
        """Without waiting for anybody."""
        ...

    def waiting(self, key: Key) -> int:
        """How many events have no reward so far, and are not known to be late."""
        ...

    def clear(self, user_id: str, policies: Iterable[str]) -> list[str]:
        """Forgets what these policies know of a user, whatever state it is in; which of them knew something."""
        ...

    def keys(self) -> Iterator[Key]: ...

    def events(self, key: Key) -> list[Event]:
        """All that are remembered; those that are forgotten first come first."""
        ...

    def close(self) -> None: ...


class Mark(NamedTuple):
    """Why a store is not to be used: its states were moved elsewhere, or it has only a part of those that come here."""

    kind: Literal["MOVED", "INCOMPLETE"]
    store: str  # the other one's name
    address: str  # and where it is, without credentials
    at_ms: int  # when the move began: the same in both


class Movable(Store, Protocol):
    """A store that somebody has opened alone, to move what is in it."""

    @property
    def name(self) -> str:
        """As settings and commands call it."""
        ...

    @property
    def address(self) -> str:
        """As it may be shown."""
        ...

    @property
    def mark(self) -> Mark | None: ...

    def set_mark(self, mark: Mark | None) -> None: ...

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        """In place of all that it has for this key."""
        ...


# What is said of a store that can't be used: it is locked, in use, or its states are elsewhere.


def is_locked(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"somebody else has held {what} for {PATIENCE_S:.0f} s; try again, and see whether a process is frozen"
    )


def is_used(address: str) -> LockTaken:
    return LockTaken(
        f"the states in {address} are in use; end 'tipbench recommend serve' wherever it runs, and try again"
    )


def is_moved_now(address: str) -> LockTaken:
    return LockTaken(f"the states in {address} are being moved just now; wait until that is done")


def check_unmarked(mark: Mark | None, name: str, address: str) -> None:
    """Raises StateRefused for a store that is not to be served from."""
    if mark is None:
        return
    began = utc_minute(mark.at_ms)
    if mark.kind == "MOVED":
        raise StateRefused(
            f"the states in {address} were moved to {mark.address} on {began}; set TIPBENCH_STATE={mark.store}, or "
            f"bring them back: tipbench recommend move {mark.store} {name}"
        )
    raise StateRefused(
        f"{address} has only a part of the states: moving them from {mark.address} on {began} was cut off; go on with: "
        f"tipbench recommend move {mark.store} {name}"
    )


def known_state(policy: Policy[Any], user_state: UserState | None) -> State:
    """A new one where nothing is kept. One that was made of other features is refused: its sums mean something else."""
    if user_state is None:
        fresh: State = policy.new_state()
        return fresh
    if user_state.feature_version != policy.features.version:
        raise StateRefused(
            f"this user's state for {policy.name} is made of features {user_state.feature_version!r}, and it now "
            f"uses {policy.features.version!r}; reset the user to begin anew"
        )
    try:
        known: State = policy.state_of(user_state.state)
    except (ValueError, OverflowError) as error:
        raise StateDamaged(f"this user's state for {policy.name} is damaged: {error}; reset the user") from error
    return known
