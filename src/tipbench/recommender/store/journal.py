"""A write-ahead journal with group commit: many changes share one sync, and survive a power cut.

A change is appended to the journal, which is synced before the change's file is replaced; files are not synced one by
one. A kill leaves every file whole and current, because the system has it. A power cut may lose or damage files that
were replaced shortly before; the journals have what they held. A segment is closed when it is large
or some seconds old: its files are synced in the background (a checkpoint), then it is removed. Each process writes
segments of its own, and holds a lock on them, so that the segments of a process that has ended can be told. A segment
that is sealed is closed within a second.
"""

import errno
import logging
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from pydantic_core import from_json

from tipbench.core.files import fsync_dir, is_sealed, make_private_folder, read_open, seal
from tipbench.core.locks import try_lock
from tipbench.core.untrusted import printable
from tipbench.recommender.store.interface import Key

SEGMENT_BYTES = 16_000_000
SEGMENT_AGE_S = 30.0
_LOOK_S = 0.5  # how often to look whether a segment was sealed
_EXTENSION = 1_000_000  # bytes by which a segment is extended: syncing what lies within takes half as long as beyond
_HEADER = struct.Struct("<II")  # length and CRC-32 of the record that follows
_LARGEST = 1_000_000_000
_SUFFIX, _NEW = ".wal", ".new"
_log = logging.getLogger(__name__)


class Segment:
    """One file of the journal. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.revisions: dict[Key, int] = {}  # the last revision of each key that this segment has
        self._file, self._path = _create(folder)
        self._size = 0
        self._allocated = 0
        self._synced = 0
        self._installing = 0  # changes that are appended, and whose files are not replaced yet
        self._failure: OSError | None = None
        self._changed = threading.Condition()
        self._sync_lock = threading.Lock()

    @property
    def size(self) -> int:
        return self._size

    @property
    def is_usable(self) -> bool:
        return self._size < SEGMENT_BYTES and self._failure is None

    @property
    def is_sealed(self) -> bool:
        try:
            return is_sealed(os.fstat(self._file))
        except OSError:  # it was closed just now
            return True

    def append(self, record: bytes) -> int:
        """Append a record and return the segment's new size; nothing is changed if it can't be written."""
        content = _HEADER.pack(len(record), crc32(record)) + record
        end = self._size + len(content)
        if end > self._allocated:
            self._write(bytes(max(_EXTENSION, end - self._allocated)), self._allocated)
            self._allocated = max(self._allocated + _EXTENSION, end)
        self._write(content, self._size)
        self._size = end
        return end

    def _write(self, content: bytes, start: int) -> None:
        if os.pwrite(self._file, content, start) < len(content):
            os.pwrite(self._file, bytes(len(content)), start)  # zeros end the segment
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def installing(self) -> None:
        """Hold off the checkpoint until a change's file is replaced, which `installed` tells."""
        with self._changed:
            self._installing += 1

    def installed(self) -> None:
        with self._changed:
            self._installing -= 1
            self._changed.notify_all()

    def sync(self, size: int) -> None:
        """Return when so many bytes are on disk. Whoever comes while another one syncs shares the next sync.

        The first sync is of the segment's name as well, and of its folder's, which may be new: who begins a segment may
        be an event loop, which must not wait for the disk.

        Once a sync has failed nobody knows what is on disk, so all others fail as well.
        """
        if self._synced >= size:
            return
        with self._sync_lock:
            if self._synced >= size:
                return
            if self._failure:
                raise OSError(self._failure.errno, self._failure.strerror, str(self._path))
            until = self._size
            try:
                if not self._synced:
                    fsync_dir(self._path.parent.parent)
                    fsync_dir(self._path.parent)
                os.fdatasync(self._file)
            except OSError as error:
                self._failure = error
                raise
            self._synced = until

    def checkpoint(self, sync_files: Callable[[Iterable[Key]], None]) -> None:
        """Sync all files that were changed, and remove the segment. If that fails, the next start recovers it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._installing)
        try:
            self.sync(self._size)
            sync_files(self.revisions)
            self._path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("%s stays until the next start: %s", self._path, printable(str(error)))
        finally:
            self.release()

    def release(self) -> None:
        """Close the file, which also releases its lock."""
        with self._sync_lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


class Position(NamedTuple):
    """A place in the journal, up to which it may be synced."""

    segment: Segment
    size: int

    def sync(self) -> None:
        self.segment.sync(self.size)


class Journal:
    """The journal of one process. Thread-safe."""

    def __init__(self, folder: Path, sync_files: Callable[[Iterable[Key]], None]) -> None:
        """`sync_files` makes the current files of these keys survive a power cut."""
        self._folder = folder
        self._sync_files = sync_files
        self._lock = threading.Lock()
        self._segment: Segment | None = None
        self._rotated = threading.Event()  # for the thread that watches the segment in use
        self._checkpoints: list[threading.Thread] = []

    def append(self, key: Key, revision: int, make_record: Callable[[int | None], bytes]) -> Position:
        """Append a record and return what to sync; afterwards, `installed` has to be called on its segment.

        `make_record` gets the last revision of this key in the same segment, on which a delta can be based.
        """
        with self._lock:
            segment = self._usable_segment()
            position = Position(segment, segment.append(make_record(segment.revisions.get(key))))
            segment.revisions[key] = revision
            segment.installing()
        return position

    def close(self) -> None:
        """Sync all files, and leave no segment behind."""
        with self._lock:
            self._rotate()
            running = list(self._checkpoints)
        for thread in running:
            thread.join()

    def release(self) -> None:
        """Close the files without a checkpoint, as if the process had ended."""
        self._rotated.set()
        if self._segment:
            self._segment.release()

    def _usable_segment(self) -> Segment:
        if self._segment is None or not self._segment.is_usable:
            self._rotate()
            self._segment = Segment(self._folder)
            self._rotated = threading.Event()
            watch = threading.Thread(
                target=self._watch, args=[self._segment, self._rotated], name="journal", daemon=True
            )
            watch.start()
        return self._segment

    def _watch(self, segment: Segment, rotated: threading.Event) -> None:
        """Close a segment once it is old, or sealed."""
        old_at = time.monotonic() + SEGMENT_AGE_S
        while (left_s := old_at - time.monotonic()) > 0 and not segment.is_sealed:
            if rotated.wait(min(left_s, _LOOK_S)):
                return
        self._rotate_when_old(segment)

    def _rotate_when_old(self, segment: Segment) -> None:
        with self._lock:
            if segment is self._segment:
                self._rotate()

    def _rotate(self) -> None:
        """Close the segment in use, if there is one: its checkpoint runs in the background."""
        self._rotated.set()
        if self._segment:
            thread = threading.Thread(target=self._segment.checkpoint, args=[self._sync_files], name="checkpoint")
            self._checkpoints = [one for one in self._checkpoints if one.is_alive()] + [thread]
            thread.start()
        self._segment = None


def _create(folder: Path) -> tuple[int, Path]:
    """Create a segment's file and lock it before it gets its name, so that nobody takes it for one that was left."""
    make_private_folder(folder)
    while True:
        name = f"{time.time_ns():020d}-{os.urandom(4).hex()}"
        unlocked, path = folder / f"{name}{_NEW}", folder / f"{name}{_SUFFIX}"
        file = os.open(unlocked, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            if try_lock(file):
                unlocked.rename(path)
                return file, path
        except FileNotFoundError:
            pass  # a process that starts has just removed it
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def records_in(content: bytes) -> Iterator[bytes]:
    """Yield a segment's records, as JSON, up to the first that is torn."""
    start = _HEADER.size
    while start <= len(content):
        length, checksum = _HEADER.unpack_from(content, start - _HEADER.size)
        record = content[start : start + length]
        if not length or len(record) < length or crc32(record) != checksum:
            return
        yield record
        start += length + _HEADER.size


# Segments that processes left behind.


class LeftSegment(NamedTuple):
    """A segment whose process has ended, locked by us until it is closed."""

    file: int
    path: Path

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records up to the first that is torn: nothing after it was acknowledged."""
        for record in records_in(read_open(self.file, self.path, _LARGEST)):  # its name may be gone by now
            yield from_json(record)

    def sync(self) -> None:
        """Make its records survive a power cut: files may be written from ones that never were synced."""
        os.fsync(self.file)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


@contextmanager
def left_segments(folder: Path) -> Iterator[list[LeftSegment]]:
    """Lock and return all segments of processes that have ended, oldest first."""
    left: list[LeftSegment] = []
    try:
        for path in sorted((*folder.glob(f"*{_SUFFIX}"), *folder.glob(f"*{_NEW}"))):
            with suppress(FileNotFoundError):  # its process has just removed it
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                if try_lock(file):
                    left.append(LeftSegment(file, path))
                else:
                    os.close(file)
        yield left
    finally:
        for segment in left:
            os.close(segment.file)


def seal_segments(folder: Path) -> list[Path]:
    """Ask all processes to close the segments that they use now; return those, which are gone once that is done."""
    found = list(folder.glob(f"*{_SUFFIX}"))
    for path in found:
        with suppress(FileNotFoundError):
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                seal(file)
            finally:
                os.close(file)
    return found


def has_segments(folder: Path) -> bool:
    return any(folder.glob(f"*{_SUFFIX}"))
