"""The records stored for a user and a policy, and the interface of a store."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from tipbench.core.errors import InvalidInput, LockTaken, StateDamaged, StateRefused, StoreUnreachable
from tipbench.core.text import utc_minute
from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.prior.interface import Priors
from tipbench.recommender.promotion.interface import Promotions
from tipbench.recommender.records import Source

_USER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LOCK_TIMEOUT_S = 5.0  # wait for a lock; its holder may be frozen


@dataclass(frozen=True)
class Event:
    """A served choice, and its reward. The features are dropped once nothing more can be learned from them."""

    id: str
    scored_ms: int
    request: str  # its digest
    chosen: str  # a candidate's id
    score: float
    propensity: float
    epsilon: float
    n: int  # number of rewards learned before it
    features: tuple[float, ...] | None
    source: Source | None = None
    reward: float | None = None
    late: bool = False  # past the reward window: a reward is recorded, but not learned
    category: str | None = None  # of what was chosen, while a reward may be learned; None before it was stored

    @property
    def waits(self) -> bool:
        return self.reward is None and not self.late


@dataclass(frozen=True)
class UserState:
    """Everything stored for a user and a policy, except the events."""

    feature_version: str
    state: Mapping[str, Any]  # from the `as_data` of the policy's state
    duplicates: int = 0
    late: int = 0
    updated_ms: int | None = None


class Key(NamedTuple):
    user_id: str
    policy: str


def check_user_id(user_id: str) -> None:
    """Raise InvalidInput for an invalid user id. The rule is the same for all stores, so that states can be moved."""
    if not _USER_ID.fullmatch(user_id):
        raise InvalidInput(
            f"the user id {user_id!r} can't be used as a file name; use up to 64 letters, digits, _ and -"
        )


class Transaction(Protocol):
    """Exclusive access to the data of one user and policy."""

    user_state: UserState | None  # None: nothing stored yet

    def event(self, event_id: str) -> Event | None: ...

    def put(self, event: Event) -> None:
        """Add or replace an event."""
        ...

    def put_state(self, user_state: UserState) -> None: ...


class Pending(Protocol):
    """Transactions that have ended, and are not durable yet. It is true if they changed anything."""

    def __bool__(self) -> bool: ...

    def sync(self) -> None:
        """Wait for the disk; by any thread, and as often as one likes."""
        ...

    def finish(self) -> None:
        """Let others see the changes once they are durable, and release their locks; raise if they can't be synced.

        Has to be called, once, by any thread. If it raises, none of them counts as stored.
        """
        ...


class Store(Protocol):
    """A store of states. What it reports as stored survives a kill and a power cut."""

    @property
    def promotions(self) -> Promotions:
        """The promotions that decide which policy is live for everyone who serves from this store."""
        ...

    @property
    def priors(self) -> Priors:
        """The population priors that policies served from this store may use."""
        ...

    def transaction(self, key: Key, event_id: str | None = None) -> AbstractContextManager[Transaction]:
        """Open a transaction with exclusive access to a key.

        Everything put is stored atomically when the block ends, and nothing of it if the block raises. `event_id` is a
        hint: that event is fetched along with the state.
        """
        ...

    def read_state(self, key: Key) -> UserState | None:
        """Return the stored state without taking a lock; None if there is none."""
        ...

    def waiting(self, key: Key) -> int:
        """Return the number of events that have no reward yet and are not marked as late."""
        ...

    def clear(self, user_id: str, policies: Iterable[str]) -> list[str]:
        """Delete a user's data for these policies, even if it is damaged; return the policies that had any."""
        ...

    def keys(self) -> Iterator[Key]: ...

    def events(self, key: Key) -> list[Event]:
        """Return all remembered events, in the order in which they will be forgotten."""
        ...

    def close(self) -> None: ...


class Marker(NamedTuple):
    """Says why a store must not be used: its states were moved elsewhere, or a move into it is incomplete."""

    kind: Literal["MOVED", "INCOMPLETE"]
    store: str  # the other store's name
    address: str  # its address, without credentials
    at_ms: int  # when the move began; the same in both stores


class Movable(Store, Protocol):
    """A store as commands open it: exclusively, to move its content, or beside a service, to erase a user."""

    @property
    def name(self) -> str:
        """The store's name in settings and commands."""
        ...

    @property
    def address(self) -> str:
        """Where the store is, in a form that may be shown."""
        ...

    @property
    def marker(self) -> Marker | None: ...

    def set_marker(self, marker: Marker | None) -> None: ...

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        """Replace everything stored for this key."""
        ...

    def policies_of(self, user_id: str) -> list[str]:
        """Return the policies that have data about a user, known ones or not."""
        ...

    def purge(self) -> list[str]:
        """Remove what is left of data that were deleted before; say of what can't be removed where it is, and why."""
        ...


# Errors for a store that can't be used: it is locked, in use, or its states are elsewhere.


def locked_error(what: str, timeout_s: float = LOCK_TIMEOUT_S) -> StoreUnreachable:
    return StoreUnreachable(
        f"another process has held the lock of {what} for {timeout_s:.0f} s; try again, and check whether a "
        "process hangs"
    )


def in_use_error(address: str) -> LockTaken:
    return LockTaken(
        f"the states in {address} are in use; stop every 'tipbench recommend serve' that uses them, and try again"
    )


def being_moved_error(address: str) -> LockTaken:
    return LockTaken(f"the states in {address} are being moved right now; wait until that is done")


def check_usable(marker: Marker | None, name: str, address: str) -> None:
    """Raise StateRefused if the store has a marker, which says that it must not be served from."""
    if marker is None:
        return
    began = utc_minute(marker.at_ms)
    if marker.kind == "MOVED":
        raise StateRefused(
            f"the states in {address} were moved to {marker.address} on {began}; set TIPBENCH_STATE={marker.store}, "
            f"or move them back: tipbench recommend move {marker.store} {name}"
        )
    raise StateRefused(
        f"{address} has only a part of the states: moving them from {marker.address} on {began} was interrupted; "
        f"continue with: tipbench recommend move {marker.store} {name}"
    )


def policy_state(policy: Policy[Any], user_state: UserState | None) -> State:
    """Return the policy's state, or a new one if nothing is stored.

    Raises StateRefused for a state made of other features, whose sums mean something else; StateDamaged for a malformed
    one.
    """
    if user_state is None:
        fresh: State = policy.new_state()
        return fresh
    if user_state.feature_version != policy.features.version:
        raise StateRefused(
            f"this user's state for {policy.name} was made with features {user_state.feature_version!r}, but the "
            f"policy now uses {policy.features.version!r}; reset the user to start over"
        )
    try:
        known: State = policy.load_state(user_state.state)
    except (ValueError, OverflowError) as error:
        raise StateDamaged(f"this user's state for {policy.name} is damaged: {error}; reset the user") from error
    return known
