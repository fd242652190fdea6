"""An append-only log in files that are begun anew when they are full: a line an entry, JSON.

Each process writes files of its own, so nobody waits for anybody, and only the last line of one can be torn. A line is
written before anything is answered: a kill loses nothing, a power cut at most the lines of a second. Whoever takes a
file away takes it with what is in it by then: the next line begins another one.
"""

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.core.files import fsync_dir, private_folder
from tipbench.core.untrusted import printable

FULL_BYTES = 64_000_000
_SYNC_EVERY_S = 1.0
_EVERY_S = 60.0
_LONGEST = 300


class SegmentLog:
    """Of one process; its threads take turns."""

    def __init__(self, folder: Path, clock: Callable[[], float], full_bytes: int = FULL_BYTES) -> None:
        self.folder = folder
        self._clock = clock
        self._full_bytes = full_bytes
        self._turn = threading.Lock()
        self._file = -1
        self._size = 0
        self._number = 0
        self._synced = 0.0

    def append(self, entry: Mapping[str, Any]) -> None:
        line = to_json(entry, inf_nan_mode="null") + b"\n"
        with self._turn:
            if self._file < 0 or self._size + len(line) > self._full_bytes or not os.fstat(self._file).st_nlink:
                self._begin()
            written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.folder))
            self._size += written
            if time.monotonic() - self._synced > _SYNC_EVERY_S:
                os.fdatasync(self._file)
                self._synced = time.monotonic()

    def close(self) -> None:
        with self._turn:
            self._end()

    def _begin(self) -> None:
        self._end()
        private_folder(self.folder)
        begun = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._clock()))
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        while self._file < 0:
            self._number += 1
            try:
                name = f"{begun}-{os.getpid()}-{self._number:04d}.jsonl"
                self._file = os.open(self.folder / name, flags, 0o600)
            except FileExistsError:
                continue  # of an earlier process with this number
        self._size = 0
        fsync_dir(self.folder)

    def _end(self) -> None:
        if self._file >= 0:
            os.fdatasync(self._file)
            os.close(self._file)
            self._file = -1


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Of all files, in the order of their names."""
    for path in segments(folder):
        for _, entry in entries_of(path):
            yield entry


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def entries_of(path: Path, start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Of one file, each with where it ends: whoever comes back later reads on from there.

    The last line may be torn, or just being written, and is left out.
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
                    f"{path}, line {_number(path, end)}, is damaged ({printable(str(error), 200)}); take the line out, "
                    "or move the file elsewhere"
                ) from error
            yield end, entry


def of_another_kind(path: Path, error: Exception) -> StateDamaged:
    """A whole line that is no entry of the log that is read."""
    return StateDamaged(
        f"{path} holds a line of another kind of log ({printable(repr(error), 200)}); move it elsewhere, "
        "or read it with the tipbench that wrote it"
    )


def _number(path: Path, end: int) -> int:
    return path.read_bytes()[:end].count(b"\n")


# Something that may happen a thousand times a second, said in a log once a minute.


class RateLimitedLog:
    """Of all its threads, one says something, and how often nobody did since the last time."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._turn = threading.Lock()
        self._next = float("-inf")
        self._unsaid = 0

    def say(self, what: str, error: Exception) -> None:
        with self._turn:
            now = self._now()
            if now < self._next:
                self._unsaid += 1
                return
            self._next = now + _EVERY_S
            unsaid, self._unsaid = self._unsaid, 0
        since = f" ({unsaid} more since this was said last)" if unsaid else ""
        self._log.warning("%s: %s%s", what, printable(f"{type(error).__name__}: {error}", _LONGEST), since)
