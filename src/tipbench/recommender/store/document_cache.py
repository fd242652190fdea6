"""Documents read from files, and a cache of those that were used last, which spares reading and parsing them."""

import errno
import os
import threading
from collections import OrderedDict
from typing import NamedTuple

from tipbench.core.errors import StateDamaged, StoreUnreachable
from tipbench.core.files import open_regular, read_open
from tipbench.recommender.store.document import Document, file_name, foreign_error, is_whole
from tipbench.recommender.store.interface import Key

CACHE_BYTES = 64_000_000
_LARGEST = 1_000_000_000
_MOST_READS = 100
_HEAD_BYTES = 256  # includes the revision
_OVERHEAD = 3  # a document takes about three times its file's size in memory, with 100 events of 12 features


def read_document(path: str, key: Key | None) -> Document | None:
    """Read a file, without its user's lock; return None if there is none.

    Raises StateDamaged if it is not a document of this key or, without a key, of the one that the file is named after.
    """
    content = read_state_file(path)
    if content is None:
        return None
    document = Document.read(content, path, key)
    if file_name(document.key) != os.path.basename(path):  # noqa: PTH119
        raise foreign_error(path, document.key)
    return document


def read_state_file(path: str) -> bytes | None:
    """Return what is in a user's file; None if there is none. It is not a document only if the file is damaged.

    A file that was replaced after it was opened is written over with a version that is not stored yet, perhaps of
    another user: then it is read again. Raises StoreUnreachable if that happens every time.
    """
    before = None
    for _ in range(_MOST_READS):
        file = _open(path)
        if file is None:
            return None
        try:
            content = read_open(file, path, _LARGEST)
            if _is_stored(file, path, content):
                if is_whole(content) or content == before:
                    return content
                before = content
        finally:
            os.close(file)
    raise StoreUnreachable(f"{path} was replaced each of the {_MOST_READS} times that it was read; try again")


def _is_stored(file: int, path: str, content: bytes) -> bool:
    """Return whether what was read from this file is a version that was stored under this path.

    The head, which has the revision, shows that the file was not written over before it was found under its path: a
    file that was replaced may have come back since, with another version.
    """
    try:
        found = os.stat(path, follow_symlinks=False)  # noqa: PTH116
    except FileNotFoundError:
        return False
    return os.fstat(file).st_ino == found.st_ino and os.pread(file, _HEAD_BYTES, 0) == content[:_HEAD_BYTES]


class Version(NamedTuple):
    """Identifies a file's content. The head has the revision: an inode and a time can come again within a few ms."""

    inode: int
    changed_ns: int
    size: int
    head: bytes

    @classmethod
    def of(cls, status: os.stat_result, content: bytes) -> "Version":
        return cls(status.st_ino, status.st_mtime_ns, status.st_size, content[:_HEAD_BYTES])


class _Entry(NamedTuple):
    version: Version
    document: Document


class DocumentCache:
    """Bounded by bytes: the documents used longest ago are evicted. Thread-safe."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def read(self, path: str, key: Key) -> Document | None:
        """Return the file's document, from the cache if the file is still the same. It must not be changed."""
        file = _open(path)
        if file is None:
            return None
        try:
            version = Version.of(os.fstat(file), os.pread(file, _HEAD_BYTES, 0))
            with self._lock:
                entry = self._entries.get(path)
            if entry and entry.version == version:
                return entry.document
            return Document.read(read_open(file, path, _LARGEST), path, key)
        finally:
            os.close(file)

    def add(self, path: str, document: Document, version: Version) -> None:
        """Add a document that was just written as this version, by somebody who still holds the user's lock."""
        with self._lock:
            self._drop(path)
            self._entries[path] = _Entry(version, document)
            self._bytes += version.size * _OVERHEAD
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._entries)))

    def drop(self, path: str) -> None:
        with self._lock:
            self._drop(path)

    def _drop(self, path: str) -> None:
        entry = self._entries.pop(path, None)
        if entry:
            self._bytes -= entry.version.size * _OVERHEAD


def _open(path: str) -> int | None:
    try:
        return open_regular(path, os.O_NOFOLLOW)  # a symbolic link could lead out of the store
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL):
            raise not_regular_error(path) from error
        raise


def not_regular_error(path: str) -> StateDamaged:
    return StateDamaged(f"{path} is not a regular file, so it can't be a user's state; remove it")
