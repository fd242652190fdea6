"""A store with one file for each user and policy, replaced atomically.

A killed process leaves either the old file or the new one. A change is written to a journal first, and replaces its
file only when the journal is synced, so the same holds for a power cut: the next start recovers what files have lost.
Locks are on 1,024 empty files, which users share by their digest; they hold across processes, and end with the process
that holds them. Waiting for a lock times out, because its holder may be frozen. Beside each lock there is a spare file,
in which its holder writes a new version: it is exchanged with the user's file, which is the spare one from then on.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic_core import from_json

from tipbench.core.errors import StateDamaged, StoreUnreachable
from tipbench.core.files import (
    PRIVATE,
    atomic_write,
    exchange,
    fsync_dir,
    fsync_file,
    overwrite,
    temporary_path,
)
from tipbench.core.locks import no_waiting
from tipbench.core.untrusted import json_text
from tipbench.recommender.prior.files import PRIORS, FilePriors
from tipbench.recommender.promotion.files import PROMOTIONS, FilePromotions
from tipbench.recommender.store.document import Document, file_name
from tipbench.recommender.store.document_cache import DocumentCache, Version, not_regular_error, read_document
from tipbench.recommender.store.interface import (
    Event,
    Key,
    Marker,
    Pending,
    Transaction,
    UserState,
    being_moved_error,
    check_usable,
    check_user_id,
    in_use_error,
)
from tipbench.recommender.store.journal import Journal, Position, has_segments, left_segments, seal_segments
from tipbench.recommender.store.locks import StoreLocks
from tipbench.recommender.store.recovery import Removals, is_removed, recovered_documents

NAME = "files"
_PURGE_TIMEOUT_S = 60.0  # for processes to close their journals
_MARKER_FILES = ("INCOMPLETE", "MOVED")  # files that say why the store must not be used


class _Change(NamedTuple):
    """A changed document, written beside its file."""

    path: str
    spare: str
    document: Document
    version: Version
    position: Position | None  # in the journal; None without durability
    held: ExitStack  # the user's lock

    def sync(self) -> None:
        if self.position:
            self.position.sync()


class _PendingChanges:
    """Implements `Pending`."""

    def __init__(self, install: Callable[[_Change], None]) -> None:
        self._install = install
        self._changes: list[_Change] = []

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add(self, change: _Change) -> None:
        self._changes.append(change)

    def sync(self) -> None:
        for change in self._changes:
            change.sync()

    def finish(self) -> None:
        with ExitStack() as installing:  # all of them, even if one raises
            for change in reversed(self._changes):
                installing.callback(self._install, change)


class FileStore:
    """Thread-safe, and safe to use from several processes at once."""

    name = NAME

    def __init__(self, folder: Path, durable: bool = True, exclusive: bool = False, with_marker: bool = False) -> None:
        """Open a store, creating its folder if needed.

        Without `durable` nothing is synced, and a power cut may lose everything: for simulations and benchmarks.
        `exclusive` is for moving: nobody else can use the store meanwhile. A marker prevents opening it, except with
        `exclusive` or `with_marker`.
        """
        self.folder = folder
        self.address = str(folder)
        self.promotions = FilePromotions(folder.with_name(PROMOTIONS))
        self.priors = FilePriors(folder.with_name(PRIORS))
        self._durable = durable
        self._locks = StoreLocks(folder / ".locks")
        folder.chmod(0o700)
        self._local = threading.local()
        self._cache = DocumentCache()
        journals = folder / ".journal"
        self._removals = Removals(journals)
        self._journal = Journal(journals, partial(_sync_files, str(folder)))
        self._release = weakref.finalize(self, _release, self._lock_store(exclusive), self._journal)
        if not exclusive and not with_marker:
            check_usable(self.marker, self.name, self.address)
        if journals.exists():
            self._recover(journals)

    @contextmanager
    def transaction(self, key: Key, event_id: str | None = None) -> Iterator[Transaction]:  # noqa: ARG002
        path, pending = self._path(key), self._pending
        with ExitStack() as held:
            lock = held.enter_context(self._locks.user(key.user_id))
            found = self._cache.read(path, key)
            document = found.copy() if found else Document.new(key)
            yield document
            change = self._write_ahead(path, self._spare(lock), document, held) if document.changed else None
        if change and pending is None:
            self._install(change)
        elif change and pending is not None:
            pending.add(change)

    @contextmanager
    def unsynced(self) -> Iterator[Pending]:
        """Let this thread's transactions in the block end before they are durable; yield them.

        Until they are finished, after the block, nothing of them counts as stored, nobody else sees it, and their users
        are locked. In the block nothing waits for a lock; WouldWait is raised instead.
        """
        self._local.pending = pending = _PendingChanges(self._install)
        try:
            with no_waiting():
                yield pending
        finally:
            self._local.pending = None

    def read_state(self, key: Key) -> UserState | None:
        document = read_document(self._path(key), key)
        return document.user_state if document else None

    def waiting(self, key: Key) -> int:
        document = read_document(self._path(key), key)
        return document.waiting if document else 0

    def events(self, key: Key) -> list[Event]:
        document = read_document(self._path(key), key)
        return document.events() if document else []

    def clear(self, user_id: str, policies: Iterable[str]) -> list[str]:
        check_user_id(user_id)
        policies = list(policies)
        # Nobody recovers meanwhile, who would forget the removal: that lock comes first, as in `_recover`.
        with self._locks.recovery(shared=True), self._locks.user(user_id) as lock:
            paths = {policy: self._path(Key(user_id, policy)) for policy in policies}
            if self._durable and any(os.path.lexists(path) for path in paths.values()):
                # Before anything is removed: a power cut must not leave a part of it to come back.
                with self._locks.removals():
                    self._removals.add([Key(user_id, policy) for policy in policies], _newer_revision(paths))
            known = [policy for policy, path in paths.items() if self._remove(path)]
            if _unlink(self._spare(lock)) or known:  # which may have been the user's
                self._sync_folder()
        return known

    def policies_of(self, user_id: str) -> list[str]:
        check_user_id(user_id)
        found = []
        for path in self.folder.glob(f"{user_id}_*.json"):
            with suppress(StateDamaged):  # whose it is can't be told
                document = read_document(str(path), None)
                if document and document.key.user_id == user_id:
                    found.append(document.key.policy)
        return found

    def purge(self) -> list[str]:
        """Have all processes close their journals now; forget removals, which name users by digests."""
        asked_at, deadline = _clock_revision(), time.monotonic() + _PURGE_TIMEOUT_S
        journals = self.folder / ".journal"
        asked = seal_segments(journals)
        while any(segment.exists() for segment in asked):
            if time.monotonic() > deadline:
                raise StoreUnreachable(
                    f"a process has not closed its journal in {journals} for {_PURGE_TIMEOUT_S:.0f} s; check whether a "
                    "process hangs, and start this again"
                )
            time.sleep(0.05)
            self._recover(journals)  # those whose process has ended
        with self._locks.removals():
            self._removals.forget(asked_at)
        return []

    def keys(self) -> Iterator[Key]:
        for path in sorted(self.folder.glob("*.json")):
            document = read_document(str(path), None)
            if document:
                yield document.key

    def close(self) -> None:
        """Sync all files, and release the lock on the store; from now on it can be moved."""
        self._journal.close()
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
            self._write(str(self.folder / marker.kind), json_text(marker._asdict()).encode() + b"\n")
        for name in _MARKER_FILES:
            if marker is None or name != marker.kind:
                (self.folder / name).unlink(missing_ok=True)
        self._sync_folder()

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        with self._locks.user(key.user_id):
            document = Document.from_events(key, user_state, events)
            document.revision = _clock_revision()
            self._write(self._path(key), document.as_bytes())

    def _lock_store(self, exclusive: bool) -> int:
        """Lock the store as in use; return the open lock file. The lock is released when that is closed.

        Raises LockTaken if the store is in use (for `exclusive`) or being moved.
        """
        file = self._locks.try_store(shared=not exclusive)
        if file is None:
            raise (in_use_error if exclusive else being_moved_error)(self.address)
        return file

    def _recover(self, journals: Path) -> None:
        """Bring back what a power cut took from files, before anybody is served; other processes wait meanwhile."""
        with self._locks.recovery(), left_segments(journals) as left:
            for segment in left:
                segment.sync()
            removals, documents = self._removals.read(), recovered_documents(left)
            for key, document in documents.items():
                with self._locks.user(key.user_id) as lock:
                    self._recover_document(document, self._spare(lock), removals)
            fsync_dir(self.folder)
            for segment in left:
                segment.remove()
            with self._locks.removals():
                if not has_segments(journals):
                    self._removals.forget()

    def _recover_document(self, document: Document, spare: str, removals: Mapping[str, int]) -> None:
        """Write this version of a document, or the file's own if that is newer, into a new file, and sync it.

        Also if the file has it: syncing it may have failed, which the system tells once, so not to us.
        """
        path = self._path(document.key)
        try:
            current = read_document(path, document.key)
        except StateDamaged:
            current = None
        newest = current if current and current.revision > document.revision else document
        if is_removed(newest, removals):
            self._remove(path)
        else:
            _unlink(spare)
            overwrite(spare, newest.as_bytes())
            fsync_file(spare)  # first: if a sync of the journal has failed, the user's file may be all that is on disk
            exchange(spare, path)
            _unlink(spare)

    def _path(self, key: Key) -> str:
        check_user_id(key.user_id)
        return f"{self.address}/{file_name(key)}"

    def _spare(self, lock: str) -> str:
        """Return the file in which the holder of this lock writes new versions."""
        return f"{self.address}/.spare-{lock}"

    @property
    def _pending(self) -> _PendingChanges | None:
        """Where changes go within `unsynced`; None elsewhere."""
        return getattr(self._local, "pending", None)

    def _write_ahead(self, path: str, spare: str, document: Document, held: ExitStack) -> _Change:
        """Write a changed document to the spare file, and the change to the journal. Takes over the lock."""
        base = document.revision
        document.revision = max(base + 1, _clock_revision())
        content = document.as_bytes()
        try:
            version = Version.of(overwrite(spare, content), content)
            # The first record of a document in a segment is all of it, so that a segment needs no other one.
            position = (
                self._journal.append(
                    document.key, document.revision, lambda last: document.delta(base) if last == base else content
                )
                if self._durable
                else None
            )
        except BaseException as error:
            with suppress(OSError):
                _unlink(spare)
            if isinstance(error, OSError) and error.errno:  # the error for a full disk names no file
                raise OSError(error.errno, error.strerror, path) from error
            raise
        return _Change(path, spare, document, version, position, held.pop_all())

    def _install(self, change: _Change) -> None:
        """Sync the journal, then exchange the files, and release the user's lock.

        Before the sync, nobody may see the change, and the file must stay: if power is cut, it may be all that is left.
        """
        with change.held:
            try:
                change.sync()
                exchange(change.spare, change.path)
                if not change.document.has_checksum:
                    # The previous version is of 0.2. Were it written over, nobody could tell whether it is whole.
                    _unlink(change.spare)
                    change.document.has_checksum = True
            except BaseException:
                with suppress(OSError):
                    _unlink(change.spare)
                raise
            finally:
                if change.position:
                    change.position.segment.installed()
            self._cache.add(change.path, change.document, change.version)

    def _write(self, path: str, content: bytes) -> None:
        """Replace a file without the journal. The caller holds its lock, so it is the only writer."""
        self._cache.drop(path)
        atomic_write(path, content, mode=PRIVATE, durable=self._durable, sole_writer=True)

    def _remove(self, path: str) -> bool:
        """Remove a file and any partial write that a killed process left; return whether it existed.

        The file is not read, so that a damaged one can be removed too.
        """
        self._cache.drop(path)
        try:
            for leftover in (temporary_path(path), Path(path).with_suffix(".new")):  # of `_write`, and of 0.2 and 0.1
                _unlink(leftover)
            Path(path).unlink()
        except FileNotFoundError:
            return False
        except IsADirectoryError as error:
            raise not_regular_error(path) from error
        return True

    def _sync_folder(self) -> None:
        if self._durable:
            fsync_dir(self.folder)


def _unlink(path: str | Path) -> bool:
    """Remove a file; return whether it existed."""
    try:
        os.unlink(path)  # noqa: PTH108 - called for every request on old files
    except FileNotFoundError:
        return False
    return True


def _clock_revision() -> int:
    """Return a revision for a new document: one that is removed and begun anew must have a higher one than before."""
    return time.time_ns() // 1000


def _newer_revision(paths: Mapping[str, str]) -> int:
    """Return a revision that is higher than those of all these documents."""
    revision = _clock_revision()
    for path in paths.values():
        with suppress(StateDamaged):
            document = read_document(path, None)
            revision = max(revision, document.revision + 1 if document else 0)
    return revision


def _sync_files(folder: str, keys: Iterable[Key]) -> None:
    """Make the current documents of these keys survive a power cut; one that is removed by now needs no sync."""
    for key in keys:
        fsync_file(f"{folder}/{file_name(key)}")
    fsync_dir(folder)


def _release(lock: int, journal: Journal) -> None:
    journal.release()
    os.close(lock)
