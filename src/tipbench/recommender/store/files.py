"""A file for each user and policy, replaced as a whole: there is always one that is whole.

A process that is killed leaves the old file or the new one. Both the file and its folder are synced before anybody is
told that something is stored, so a power cut does the same. Locks are on 1,024 empty files that users share by their
digest; they hold across processes, and end with the process that held them. Nobody waits for one endlessly: a process
may be frozen while it holds one.
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
from tipbench.recommender.promotion.files import PROMOTIONS, FilePromotions
from tipbench.recommender.store import interface as marks
from tipbench.recommender.store.document import Document
from tipbench.recommender.store.interface import (
    Event,
    Key,
    Mark,
    Transaction,
    UserState,
    check_unmarked,
    check_user_id,
    is_locked,
    is_moved_now,
    is_used,
)

NAME = "files"
_LOCKS = 1024
_LARGEST = 1_000_000_000
_MARKS = ("INCOMPLETE", "MOVED")  # files that say why the others are not to be used


class FileStore:
    """Safe to be used by many threads and processes at once."""

    name = NAME

    def __init__(self, folder: Path, durable: bool = True, exclusive: bool = False) -> None:
        """Without `durable` nothing is synced, and a power cut may cost everything: for simulations, and to measure.
        `alone` is for moving: nobody else may use it meanwhile, and a mark is no hindrance."""
        self.folder = folder
        self.address = str(folder)
        self.promotions = FilePromotions(folder.with_name(PROMOTIONS))
        self._durable = durable
        self._locks = folder / ".locks"
        make_private_folder(self._locks)
        folder.chmod(0o700)
        self._turns = [threading.Lock() for _ in range(_LOCKS)]
        self._leave = weakref.finalize(self, os.close, self._occupied(exclusive))
        if not exclusive:
            check_unmarked(self.mark, self.name, self.address)

    @contextmanager
    def transaction(self, key: Key, event_id: str | None = None) -> Iterator[Transaction]:  # noqa: ARG002
        path = self._path(key)
        with self._alone(key.user_id):
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
        with self._alone(user_id):
            known = [policy for policy in policies if _removed(self._path(Key(user_id, policy)))]
            if known:
                self._sync_folder()
        return known

    def keys(self) -> Iterator[Key]:
        for path in sorted(self.folder.glob("*.json")):
            document = _read(path, None)
            if document:
                yield document.key

    def close(self) -> None:
        """From now on it may be moved."""
        self._leave()

    @property
    def mark(self) -> Mark | None:
        for name in _MARKS:
            path = self.folder / name
            try:
                return Mark(**from_json(path.read_bytes()))
            except FileNotFoundError:
                continue
            except (TypeError, ValueError) as error:
                raise StateDamaged(f"{path} does not say what became of the states here: {error}") from error
        return None

    def set_mark(self, mark: Mark | None) -> None:
        if mark:
            self._write(self.folder / mark.kind, json_text(mark._asdict()).encode() + b"\n")
        for name in _MARKS:
            if mark is None or name != mark.kind:
                (self.folder / name).unlink(missing_ok=True)
        self._sync_folder()

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        with self._alone(key.user_id):
            self._write(self._path(key), Document.of(key, user_state, events).as_bytes())

    def _occupied(self, exclusive: bool) -> int:
        """A lock that says, as long as its file is open, that the folder is in use; it ends with the process."""
        file = os.open(self._locks / "store", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        if not try_lock(file, shared=not exclusive):
            os.close(file)
            raise (is_used if exclusive else is_moved_now)(self.address)
        return file

    def _path(self, key: Key) -> Path:
        check_user_id(key.user_id)
        return self.folder / f"{key.user_id}_{key.policy.replace('/', '_')}.json"

    @contextmanager
    def _alone(self, user_id: str) -> Iterator[None]:
        """Threads of this process queue for their turn, and whose turn it is looks for the lock again and again."""
        number = int(text_digest(user_id)[:8], 16) % _LOCKS
        until = time.monotonic() + marks.PATIENCE_S
        if not self._turns[number].acquire(timeout=marks.PATIENCE_S):
            raise is_locked(user_id)
        try:
            lock = os.open(self._locks / f"{number:04d}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                if not lock_until(lock, until):
                    raise is_locked(user_id)
                yield
            finally:
                os.close(lock)
        finally:
            self._turns[number].release()

    def _write(self, path: Path, content: bytes) -> None:
        """Only whoever holds the lock writes."""
        atomic_write(path, content, mode=PRIVATE, durable=self._durable, sole_writer=True)

    def _sync_folder(self) -> None:
        if self._durable:
            fsync_dir(self.folder)


def _read(path: Path, key: Key | None) -> Document | None:
    try:
        content = read_regular(path, _LARGEST, os.O_NOFOLLOW)  # a link leads elsewhere
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL):
            raise _no_file(path) from error
        raise
    return Document.read(content, path, key)


def _removed(path: Path) -> bool:
    """Unread: it may be damaged, and this is the way out. What a killed process left half written goes as well."""
    try:
        Path(temporary_path(path)).unlink(missing_ok=True)
        path.with_suffix(".new").unlink(missing_ok=True)  # as earlier versions called it
        path.unlink()
    except FileNotFoundError:
        return False
    except IsADirectoryError as error:
        raise _no_file(path) from error
    return True


def _no_file(path: Path) -> StateDamaged:
    return StateDamaged(f"{path} is no plain file, so it can't be used as a state; take it away")
