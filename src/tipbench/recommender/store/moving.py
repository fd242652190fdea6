"""Move all states and promotions from one store to another, so that exactly one of them can be served from afterwards.

Both stores are opened exclusively. The destination is marked as incomplete before the first record is written, and the
source as moved before the destination's marker is removed: after a kill at any point, at most one of the two can be
opened, and running the same move again resumes it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from tipbench.core.errors import Conflict, InvalidInput, MissingExtra, NotFound, StateDamaged, StateRefused
from tipbench.core.paths import state_folder
from tipbench.core.settings import Settings
from tipbench.recommender.policies.catalog import prior_of
from tipbench.recommender.prior.interface import PriorRecord
from tipbench.recommender.promotion.files import PROMOTIONS
from tipbench.recommender.promotion.interface import Act
from tipbench.recommender.store.interface import Event, Key, Marker, Movable, UserState

Watcher = Callable[[str, int, int], None]  # (activity, number done, total)


class MoveResult(NamedTuple):
    states: int
    users: int


class _Record(NamedTuple):
    user_state: UserState | None
    events: list[Event]


def move(source: Movable, destination: Movable, at_ms: int, watch: Watcher) -> MoveResult:
    """Move everything, or leave the source in effect; resume an interrupted move.

    Raises before anything is written if the move would overwrite other data.
    """
    keys = list(source.keys())
    missing = _promotions_missing(source, destination)
    if not _is_finished(source, destination):
        _check_source(source, keys)
        _check_destination(source, destination, set(keys), watch)
        destination.set_marker(Marker("INCOMPLETE", source.name, source.address, at_ms))
        _copy(source, destination, keys, watch)
        for digest in source.priors.digests():
            destination.priors.put(source.priors.read(digest).content)
        for number, act in enumerate(missing, len(source.promotions.history()) - len(missing)):
            destination.promotions.append(act, number)
        source.set_marker(Marker("MOVED", destination.name, destination.address, at_ms))
    destination.set_marker(None)
    return MoveResult(len(keys), len({key.user_id for key in keys}))


def _is_finished(source: Movable, destination: Movable) -> bool:
    """Return whether an earlier move lacks only its last step: both markers belong to the same move."""
    left, arrived = source.marker, destination.marker
    return (
        left is not None
        and arrived is not None
        and (left.kind, arrived.kind) == ("MOVED", "INCOMPLETE")
        and left.at_ms == arrived.at_ms
    )


def _check_source(source: Movable, keys: list[Key]) -> None:
    marker = source.marker
    if marker and marker.kind == "MOVED":
        raise StateRefused(
            f"the states in {source.address} were moved to {marker.address} already; move them from there"
        )
    if marker:
        raise StateRefused(
            f"{source.address} has only a part of the states of {marker.address}; finish that first: tipbench "
            f"recommend move {marker.store} {source.name}"
        )
    if not keys and not source.promotions.history():
        raise NotFound(f"there are no states in {source.address}, so there is nothing to move")


def _check_destination(source: Movable, destination: Movable, keys: set[Key], watch: Watcher) -> None:
    """Raise Conflict if the destination holds other data.

    What was moved from it to the source before, or copied by an interrupted move, may be replaced.
    """
    marker = destination.marker
    if marker:
        if (marker.store, marker.address) != (source.name, source.address):
            was = "were moved to" if marker.kind == "MOVED" else "are a part of those that come from"
            raise Conflict(
                f"the states in {destination.address} {was} {marker.address}, which is not {source.address}; "
                "empty it first if its data is no longer needed"
            )
        return
    there = list(destination.keys())
    for number, key in enumerate(there, 1):
        if key not in keys or _record(source, key) != _record(destination, key):
            raise Conflict(
                f"{destination.address} already has states, such as that of {key.user_id} with {key.policy}, and "
                f"{source.address} does not have the same; move to an empty store"
            )
        watch("checking", number, len(there))


def _promotions_missing(source: Movable, destination: Movable) -> tuple[Act, ...]:
    """Return the promotions that the destination lacks; raise Conflict if it has others than the source."""
    acts, there = source.promotions.history(), destination.promotions.history()
    if acts[: len(there)] != there:
        raise Conflict(
            f"{destination.promotions.address} has promotions that {source.promotions.address} does not have; move "
            "to an empty store"
        )
    return acts[len(there) :]


def _copy(source: Movable, destination: Movable, keys: list[Key], watch: Watcher) -> None:
    """Make the destination's states equal to the source's; remove any others, so that a reset user does not return."""
    for number, key in enumerate(keys, 1):
        record = _record(source, key)
        if record != _record(destination, key):
            destination.write(key, *record)
            if record != _record(destination, key):
                raise StateDamaged(
                    f"the state of {key.user_id} with {key.policy} is not the same in {destination.address} as in "
                    f"{source.address}; nothing was changed in the source, so keep using that"
                )
        watch("moving", number, len(keys))
    for key in set(destination.keys()).difference(keys):
        destination.clear(key.user_id, [key.policy])


def _record(store: Movable, key: Key) -> _Record:
    return _Record(store.read_state(key), store.events(key))


# The stores by name, for the settings to choose from. A store's code is imported only when it is used.


def _folder(settings: Settings) -> Path:
    return state_folder(settings.home)


def _files(settings: Settings, exclusive: bool, with_marker: bool) -> Movable:
    from tipbench.recommender.store.files import FileStore

    return FileStore(_folder(settings), exclusive=exclusive, with_marker=with_marker)


def _postgresql(settings: Settings, exclusive: bool, with_marker: bool) -> Movable:
    url = settings.get("TIPBENCH_POSTGRESQL_URL")
    if not url:
        raise InvalidInput(
            "states in PostgreSQL need a database; set TIPBENCH_POSTGRESQL_URL to postgresql://user:password@host/name"
        )
    try:
        from tipbench.recommender.store.postgresql import PostgresStore
    except ImportError as error:
        raise MissingExtra(
            f"states in PostgreSQL need another package: pip install 'tipbench[postgresql]' ({error})"
        ) from error
    return PostgresStore(url, exclusive, with_marker)


STORES: Mapping[str, Callable[[Settings, bool, bool], Movable]] = {"files": _files, "postgresql": _postgresql}


def open_store(settings: Settings) -> Movable:
    """Open the store that the settings name, to serve from."""
    return _open(settings.get("TIPBENCH_STATE"), settings, exclusive=False)


def read_priors(identities: Iterable[str], settings: Settings) -> dict[str, PriorRecord]:
    """Return the priors that these identities name, by digest; the store is opened only if they name any."""
    digests = {digest for identity in identities if (digest := prior_of(identity))}
    if not digests:
        return {}
    with closing(open_store(settings)) as store:
        return {digest: store.priors.read(digest) for digest in digests}


def check_not_left_behind(store: Movable, settings: Settings) -> None:
    """Raise StateRefused if the store is empty but the files hold states or promotions that were not moved.

    All users would silently start from scratch, with the first policy.
    """
    folder = _folder(settings)
    if store.name == "files" or (folder / "MOVED").exists() or next(iter(store.keys()), None) is not None:
        return
    history = folder.with_name(PROMOTIONS)
    if next(folder.glob("*.json"), None) is not None:
        left = f"the states of users are in {folder}"
    elif history.exists() and not store.promotions.history():
        left = f"promotions are in {history}"
    else:
        return
    raise StateRefused(
        f"{left}, and nothing of that is in {store.address}; 'tipbench recommend move files {store.name}' moves "
        "them, or move those files away to start over"
    )


def open_exclusive(name: str, settings: Settings) -> Movable:
    """Open a store to move its content; raise LockTaken while it is in use."""
    return _open(name, settings, exclusive=True)


@contextmanager
def open_all(settings: Settings) -> Iterator[list[Movable]]:
    """Open every store that has states, or had some before they were moved, beside the services that use them."""
    in_files = _folder(settings).exists()
    in_database = settings.get("TIPBENCH_STATE") == "postgresql" or settings.is_set("TIPBENCH_POSTGRESQL_URL")
    names = [name for name, wanted in (("files", in_files), ("postgresql", in_database)) if wanted]
    with ExitStack() as stack:
        yield [stack.enter_context(closing(_open(name, settings, exclusive=False, with_marker=True))) for name in names]


def _open(name: str, settings: Settings, exclusive: bool, with_marker: bool = False) -> Movable:
    if name not in STORES:
        raise InvalidInput(f"there is no store {name!r} for states; set TIPBENCH_STATE to {' or '.join(STORES)}")
    return STORES[name](settings, exclusive, with_marker)
