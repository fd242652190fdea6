"""An append-only log of JSON lines in segment files; a full segment is followed by a new one.

Each process writes its own segments, so writers never wait for each other, and only the last line of a segment can be
torn. A line is written before the request is answered: a kill loses nothing, a power cut at most one second of lines.
Once a segment is deleted or sealed, or can't be synced, the next line starts a new one. `rewriting.py` takes lines out
of sealed segments: a rewritten segment has a new name, `NAME~1.jsonl`, so a name never stands for other content than
before.
"""

import errno
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.core.files import fsync_dir, is_sealed, private_folder
from tipbench.core.locks import WouldWait, lock_until, may_wait, unlock
from tipbench.core.untrusted import printable

FULL_BYTES = 64_000_000
LOCK_TIMEOUT_S = 5.0  # whoever holds the lock of a segment may be frozen
_SYNC_INTERVAL_S = 1.0
_WARN_INTERVAL_S = 60.0
_MAX_CHARS = 300
_SUFFIX = ".jsonl"
_REWRITTEN = re.compile(r"(.+)~(\d+)")
_log = logging.getLogger(__name__)
_Synced = TypeVar("_Synced")


class SegmentLog:
    """The log's writer in one process. Thread-safe."""

    def __init__(self, folder: Path, clock: Callable[[], float], full_bytes: int = FULL_BYTES) -> None:
        self.folder = folder
        self._clock = clock
        self._full_bytes = full_bytes
        self._lock = threading.Lock()
        self._file = -1
        self._size = 0
        self._segment_number = 0
        self._left: list[int] = []  # open files of earlier segments, which are synced and closed by the next sync
        self._synced_at = 0.0
        self._syncing: threading.Thread | None = None
        # What `_sync` found, by the segment's number. It takes no lock, which an event loop would have to wait for.
        self._named = 0  # the last one whose name is on disk
        self._failed = 0  # the last one that could not be synced
        self._warnings = RateLimitedLog(_log)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry as a line. Raises OSError if it can't be written, or WouldWait."""
        line = to_json(entry, inf_nan_mode="null") + b"\n"
        if not self._lock.acquire(blocking=may_wait()):
            raise WouldWait
        try:
            self._lock_segment(len(line))
            try:
                written = os.write(self._file, line)
                if written < len(line):
                    os.ftruncate(self._file, self._size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.folder))
            finally:
                unlock(self._file)
            self._size += written
            if time.monotonic() - self._synced_at > _SYNC_INTERVAL_S:
                self._start_sync()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Sync and close all segments."""
        with self._lock:
            self._leave_segment()
            if self._syncing:
                self._syncing.join()
            left, self._left = self._left, []
            self._sync(self._segment_number, left)

    def _start_sync(self) -> None:
        """Sync on a thread, because nobody has to wait for it: on one, however long the disk takes."""
        if self._syncing and self._syncing.is_alive():
            return
        self._synced_at = time.monotonic()
        work = (self._segment_number, self._left, self._file)
        thread = threading.Thread(target=self._sync, args=work, name="log", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # there are too many threads; the line is written all the same
            self._warn(error)
        else:
            self._syncing, self._left = thread, []

    def _sync(self, number: int, left: Sequence[int], *in_use: int) -> None:
        """Sync the segment of this number, its name, and those that were left, which are closed."""
        synced = [self._try_sync(os.fdatasync, file) for file in (*left, *in_use)]
        if self._named < number:
            synced.append(self._try_sync(fsync_dir, self.folder))
        for file in left:
            os.close(file)
        if all(synced):
            self._named = number
        else:
            self._failed = number  # the system reports an error once: the next sync would say that all is well

    def _try_sync(self, sync: Callable[[_Synced], None], what: _Synced) -> bool:
        """Return whether that could be synced."""
        try:
            sync(what)
        except OSError as error:
            self._warn(error)
            return False
        return True

    def _warn(self, error: Exception) -> None:
        self._warnings.warning(f"a power cut may take lines of {self.folder}", error)

    def _lock_segment(self, length: int) -> None:
        """Lock a segment that is open and has room: nobody can seal it before the line is in it."""
        if self._size + length > self._full_bytes or self._failed == self._segment_number:
            self._leave_segment()
        while True:
            if self._file < 0:
                self._open_segment()
            if not lock_until(self._file, time.monotonic() + LOCK_TIMEOUT_S):
                raise lock_error(self.folder)
            status = os.fstat(self._file)
            if status.st_nlink and not is_sealed(status):
                return
            self._leave_segment()

    def _open_segment(self) -> None:
        private_folder(self.folder)
        opened = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._clock()))
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        while self._file < 0:
            self._segment_number += 1
            name = f"{opened}-{os.getpid()}-{self._segment_number:04d}"
            if any(self.folder.glob(f"{name}~*{_SUFFIX}")):
                continue  # it would count as the version before
            try:
                self._file = os.open(self.folder / f"{name}{_SUFFIX}", flags, 0o600)
            except FileExistsError:
                continue  # left by an earlier process with the same pid
        self._size = 0

    def _leave_segment(self) -> None:
        """Write no more to the segment in use, if there is one; the next sync closes it."""
        if self._file >= 0:
            unlock(self._file)
            self._left.append(self._file)
            self._file = -1


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of all segments, in the order of the file names."""
    for path in segments(folder):
        for _, entry in read_entries(path):
            yield entry


def segments(folder: Path) -> list[Path]:
    """Return the segments in the order of their names; of one that was rewritten, the newest version."""
    newest = {_version(path)[0]: path for path in sorted(folder.glob(f"*{_SUFFIX}"), key=_version)}
    return list(newest.values())


def process_and_number(path: Path) -> tuple[str, str]:
    """Return the id of the process that wrote a segment, and the segment's number among those of that process."""
    begun, _, number = _version(path)[0].rpartition("-")
    return begun.rpartition("-")[2], number


def next_version(path: Path) -> Path:
    """Return the path of a segment's next version, which counts instead of this one as soon as it is there."""
    name, version = _version(path)
    return path.with_name(f"{name}~{version + 1}{_SUFFIX}")


def _version(path: Path) -> tuple[str, int]:
    """Return a segment's name as it was begun, and how often it was rewritten."""
    rewritten = _REWRITTEN.fullmatch(path.stem)
    return (rewritten[1], int(rewritten[2])) if rewritten else (path.stem, 0)


def read_entries(path: Path, start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of one segment from byte offset `start`, each with its end offset, to resume from later.

    A last line without a line break is torn or still being written, and is skipped. Raises StateDamaged for a line that
    is not JSON.
    """
    with path.open("rb") as lines:
        lines.seek(start)
        end = start
        for line in lines:
            if not line.endswith(b"\n"):
                break
            end += len(line)
            try:
                entry = from_json(line)
            except ValueError as error:
                raise StateDamaged(
                    f"{path}, line {_line_number(path, end)}, is damaged ({printable(str(error), 200)}); remove the "
                    "line, or move the file elsewhere"
                ) from error
            yield end, entry


def lock_error(folder: Path) -> OSError:
    why = f"another process has held the lock of a file for {LOCK_TIMEOUT_S:.0f} s; check whether a process hangs"
    return OSError(errno.ETIMEDOUT, why, str(folder))


def wrong_kind_error(path: Path, error: Exception) -> StateDamaged:
    """Return the error for a complete line that does not belong to this kind of log."""
    return StateDamaged(
        f"{path} contains a line of another kind of log ({printable(repr(error), 200)}); move it elsewhere, "
        "or read it with the tipbench that wrote it"
    )


def _line_number(path: Path, end: int) -> int:
    return path.read_bytes()[:end].count(b"\n")


# Rate-limited warnings, for what may happen a thousand times a second.


class RateLimitedLog:
    """Logs at most one warning a minute, with the number suppressed since the last one. Thread-safe."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._lock = threading.Lock()
        self._next_at = float("-inf")
        self._suppressed = 0

    def warning(self, message: str, error: Exception) -> None:
        with self._lock:
            now = self._now()
            if now < self._next_at:
                self._suppressed += 1
                return
            self._next_at = now + _WARN_INTERVAL_S
            suppressed, self._suppressed = self._suppressed, 0
        since = f" ({suppressed} more since the last such message)" if suppressed else ""
        self._log.warning("%s: %s%s", message, printable(f"{type(error).__name__}: {error}", _MAX_CHARS), since)
