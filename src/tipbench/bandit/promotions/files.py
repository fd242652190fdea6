"""The history in a file, a line of JSON for each act.

Whoever adds to it holds a lock on it until the line is synced, and readers wait for that: what was read stays, even
after a power cut. A process that is killed while it writes leaves a line without an end, which never counted; the next
one to write takes it away.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tipbench.bandit.folders import sync_folder
from tipbench.bandit.promotions.interface import Act, lineage, read_acts, was_changed

_log = logging.getLogger(__name__)


class FilePromotions:
    look_again_s = 0.0

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = str(path)

    def mark(self) -> object:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def history(self) -> tuple[Act, ...]:
        try:
            with self._locked(os.O_RDONLY, fcntl.LOCK_SH) as file:
                return self._acts(_whole_lines(_content(file)))
        except FileNotFoundError:
            return ()

    def append(self, act: Act, known: int) -> None:
        with self._locked(os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as file:
            content = _content(file)
            whole = _whole_lines(content)
            acts = self._acts(whole)
            if len(acts) != known:
                raise was_changed(acts, self.address)
            lineage((*acts, act), self.address)
            if len(whole) < len(content):
                _log.warning(
                    "%s ended with an act that was not written to its end, because its writer was killed; it never "
                    "counted, and is taken away",
                    self.address,
                )
                os.ftruncate(file, len(whole))
            self._write(file, len(whole), act.as_json().encode() + b"\n")

    def _write(self, file: int, end: int, line: bytes) -> None:
        try:
            written = os.pwrite(file, line, end)
            if written < len(line):
                raise OSError(f"{self.address} took only a part of an act; see that the disk has room")
            os.fsync(file)
        except BaseException:
            os.ftruncate(file, end)
            raise
        sync_folder(self._path.parent)

    def _acts(self, whole: bytes) -> tuple[Act, ...]:
        return read_acts(whole.split(b"\n")[:-1], self.address)

    @contextmanager
    def _locked(self, flags: int, lock: int) -> Iterator[int]:
        file = os.open(self._path, flags | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, lock)
            yield file
        finally:
            os.close(file)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]
