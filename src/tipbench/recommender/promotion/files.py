"""The history in a file, with one JSON line per act.

A writer holds a lock on the file until its line is synced, and readers wait for that: what has been read is durable,
even after a power cut. A process killed while writing leaves an unterminated line, which never counted; the next writer
removes it. Waiting for the lock times out, because its holder may be frozen.
"""

import errno
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tipbench.core.errors import StateDamaged
from tipbench.core.files import fsync_dir, open_regular
from tipbench.core.locks import lock_until
from tipbench.recommender.promotion.interface import Act, changed_error, is_act, live_history, read_acts
from tipbench.recommender.store import interface as store_interface

PROMOTIONS = "promotions.jsonl"  # file name, next to the folder of states
_log = logging.getLogger(__name__)


class FilePromotions:
    poll_interval_s = 0.0

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = str(path)

    def revision(self) -> object:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def history(self) -> tuple[Act, ...]:
        try:
            with self._locked(os.O_RDONLY, shared=True) as file:
                return self._acts(self._whole_lines(_content(file)))
        except FileNotFoundError:
            return ()

    def content(self) -> bytes:
        """Return the file as it is while nobody writes to it, for a backup. Raises FileNotFoundError."""
        with self._locked(os.O_RDONLY, shared=True) as file:
            return _content(file)

    def append(self, act: Act, known: int) -> None:
        with self._locked(os.O_RDWR | os.O_CREAT) as file:
            content = _content(file)
            whole = self._whole_lines(content)
            acts = self._acts(whole)
            if len(acts) != known:
                raise changed_error(acts, self.address)
            live_history((*acts, act), self.address)
            if len(whole) < len(content):
                _log.warning(
                    "%s ended with an incomplete entry, because its writer was killed; it never counted and was "
                    "removed",
                    self.address,
                )
                os.ftruncate(file, len(whole))
            self._write(file, len(whole), act.as_json().encode() + b"\n")

    def _write(self, file: int, end: int, line: bytes) -> None:
        try:
            written = os.pwrite(file, line, end)
            if written < len(line):
                raise OSError(errno.ENOSPC, "only part of an entry could be written to the disk")
            os.fsync(file)
        except BaseException as error:
            os.ftruncate(file, end)
            if isinstance(error, OSError):  # the error of a full disk does not name the file
                raise OSError(error.errno, error.strerror, self.address) from error
            raise
        fsync_dir(self._path.parent)

    def _acts(self, whole: bytes) -> tuple[Act, ...]:
        return read_acts(whole.split(b"\n")[:-1], self.address)

    @contextmanager
    def _locked(self, flags: int, shared: bool = False) -> Iterator[int]:
        try:
            file = open_regular(self._path, flags)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EISDIR):
                raise self._not_regular_error() from None
            raise
        try:
            if not lock_until(file, time.monotonic() + store_interface.LOCK_TIMEOUT_S, shared):
                raise store_interface.locked_error(self.address)
            yield file
        finally:
            os.close(file)

    def _not_regular_error(self) -> StateDamaged:
        return StateDamaged(f"{self.address} is not a regular file, so it can't hold the history; remove it")

    def _whole_lines(self, content: bytes) -> bytes:
        """Return the content without an unterminated last line.

        Raises StateDamaged if that line is a complete act: an editor left it, and whether it counts is unclear.
        """
        end = content.rfind(b"\n") + 1
        if is_act(content[end:]):
            raise StateDamaged(
                f"{self.address} ends without a line break, perhaps left by an editor; add the line break if the "
                "last entry counts, or remove the entry"
            )
        return content[:end]


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)
