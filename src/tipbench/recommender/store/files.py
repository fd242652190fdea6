"""A store with one file for each user and policy, replaced atomically.

A killed process leaves either the old file or the new one. The file and its folder are synced before a write is
reported as done, so the same holds for a power cut. Locks are on 1,024 empty files, which users share by their digest;
they hold across processes, and end with the process that holds them. Waiting for a lock times out, because its holder
may be frozen.
"""

import errno
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic_core import from_json

from tipbench.core.errors import StateDamaged
from tipbench.core.files import PRIVATE, atomic_write, fsync_dir, make_private_folder, read_regular, temporary_path
from tipbench.core.identity import text_digest
from tipbench.core.locks import lock_until, try_lock
from tipbench.core.untrusted import json_text
from tipbench.recommender.prior.files import PRIORS, FilePriors
from tipbench.recommender.promotion.files import PROMOTIONS, FilePromotions
from tipbench.recommender.store import interface as store_interface
from tipbench.recommender.store.document import Document
from tipbench.recommender.store.interface import (
    Event,
    Key,
    Marker,
    Transaction,
    UserState,
    being_moved_error,
    check_usable,
    check_user_id,
    in_use_error,
    locked_error,
)

NAME = "files"
_LOCKS = 1024
_LARGEST = 1_000_000_000
_MARKER_FILES = ("INCOMPLETE", "MOVED")  # files that say why the store must not be used


class FileStore:
    """Thread-safe, and safe to use from several processes at once."""

    name = NAME

    def __init__(self, folder: Path, durable: bool = True, exclusive: bool = False) -> None:
        """Open a store, creating its folder if needed.

        Without `durable` nothing is synced, and a power cut may lose everything: for simulations and benchmarks.
        `exclusive` is for moving: nobody else can use the store meanwhile, and a marker does not prevent opening it.
        """
        self.folder = folder
        self.address = str(folder)
        self.promotions = FilePromotions(folder.with_name(PROMOTIONS))
        self.priors = FilePriors(folder.with_name(PRIORS))
        self._durable = durable
        self._locks = folder / ".locks"
        make_private_folder(self._locks)
        folder.chmod(0o700)
        self._thread_locks = [threading.Lock() for _ in range(_LOCKS)]
        self._release = weakref.finalize(self, os.close, self._lock_store(exclusive))
        if not exclusive:
            check_usable(self.marker, self.name, self.address)

    @contextmanager
    def transaction(self, key: Key, event_id: str | None = None) -> Iterator[Transaction]:  # noqa: ARG002
        path = self._path(key)
        with self._user_lock(key.user_id):
            document = _read(path, key) or Document.new(key)
            yield document
            if document.changed:
                self._write(path, document.as_bytes())

    def read_state(self, key: Key) -> UserState | None:
        document = _read(self._path(key), key)
        return document.user_state if document else None

    def waiting(self, key: Key) -> int:
        return sum(event.waits for event in self.events(key))

    def events(self, key: Key) -> list[Event]:
        document = _read(self._path(key), key)
        return document.events() if document else []

    def clear(self, user_id: str, policies: Iterable[str]) -> list[str]:
        check_user_id(user_id)
        with self._user_lock(user_id):
            known = [policy for policy in policies if _remove(self._path(Key(user_id, policy)))]
            if known:
                self._sync_folder()
        return known

    def keys(self) -> Iterator[Key]:
        for path in sorted(self.folder.glob("*.json")):
            document = _read(path, None)
            if document:
                yield document.key

    def close(self) -> None:
        """Release the lock on the store; from now on it can be moved."""
        self._release()

    @property
    def marker(self) -> Marker | None:
        for name in _MARKER_FILES:
            path = self.folder / name
            try:
                return Marker(**from_json(path.read_bytes()))
            except FileNotFoundError:
                continue
            except (TypeError, ValueError) as error:
                raise StateDamaged(f"{path} does not say what happened to the states here: {error}") from error
        return None

    def set_marker(self, marker: Marker | None) -> None:
        if marker:
            self._write(self.folder / marker.kind, json_text(marker._asdict()).encode() + b"\n")
        for name in _MARKER_FILES:
            if marker is None or name != marker.kind:
                (self.folder / name).unlink(missing_ok=True)
        self._sync_folder()

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        with self._user_lock(key.user_id):
            self._write(self._path(key), Document.from_events(key, user_state, events).as_bytes())

    def _lock_store(self, exclusive: bool) -> int:
        """Lock the store as in use; return the open lock file. The lock is released when that is closed.

        Raises LockTaken if the store is in use (for `exclusive`) or being moved.
        """
        file = os.open(self._locks / "store", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        if not try_lock(file, shared=not exclusive):
            os.close(file)
            raise (in_use_error if exclusive else being_moved_error)(self.address)
        return file

    def _path(self, key: Key) -> Path:
        check_user_id(key.user_id)
        return self.folder / f"{key.user_id}_{key.policy.replace('/', '_')}.json"

    @contextmanager
    def _user_lock(self, user_id: str) -> Iterator[None]:
        """Hold the lock of a user: first among this process's threads, then, by polling, among processes.

        Raises StoreUnreachable on a timeout.
        """
        number = int(text_digest(user_id)[:8], 16) % _LOCKS
        until = time.monotonic() + store_interface.LOCK_TIMEOUT_S
        if not self._thread_locks[number].acquire(timeout=store_interface.LOCK_TIMEOUT_S):
            raise locked_error(user_id)
        try:
            lock = os.open(self._locks / f"{number:04d}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                if not lock_until(lock, until):
                    raise locked_error(user_id)
                yield
            finally:
                os.close(lock)
        finally:
            self._thread_locks[number].release()

    def _write(self, path: Path, content: bytes) -> None:
        """Replace a file. The caller holds its lock, so it is the only writer."""
        atomic_write(path, content, mode=PRIVATE, durable=self._durable, sole_writer=True)

    def _sync_folder(self) -> None:
        if self._durable:
            fsync_dir(self.folder)


def _read(path: Path, key: Key | None) -> Document | None:
    try:
        content = read_regular(path, _LARGEST, os.O_NOFOLLOW)  # a symbolic link could lead out of the store
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL):
            raise _not_regular_error(path) from error
        raise
    return Document.read(content, path, key)


def _remove(path: Path) -> bool:
    """Remove a file and any partial write that a killed process left; return whether it existed.

    The file is not read, so that a damaged one can be removed too.
    """
    try:
        Path(temporary_path(path)).unlink(missing_ok=True)
        path.with_suffix(".new").unlink(missing_ok=True)  # the temporary name in earlier versions
        path.unlink()
    except FileNotFoundError:
        return False
    except IsADirectoryError as error:
        raise _not_regular_error(path) from error
    return True


def _not_regular_error(path: Path) -> StateDamaged:
    return StateDamaged(f"{path} is not a regular file, so it can't be a user's state; remove it")
