"""The journal: what was generated and is not in MLflow yet, in a file that survives a kill.

A line a cell, written as soon as the cell is done; the tracking side reads along behind it. So generating never waits
for MLflow, memory stays constant, and an answer outlives a server that is down. The first line holds, at a fixed place,
how far the reading side has got. Each time that it has got everything, the file starts over, so that it stays small; at
the end it is removed.
"""

import errno
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tipbench.bench.tracking.store import RunDraft
from tipbench.core.files import make_private_folder
from tipbench.core.identity import data_digest
from tipbench.core.locks import try_lock

_MARK = b"done %020d\n"
_MARK_SIZE = len(_MARK % 0)
_CHUNK = 1 << 20
_SYNC_EVERY_S = 1.0  # a kill loses nothing; a power cut loses what a second holds


@dataclass(frozen=True)
class JournalHead:
    """For whom the entries are; texts that all of them share are kept here once."""

    address: str
    experiment: str
    suite: str
    shared_texts: Mapping[str, str]


@dataclass(frozen=True)
class Entry:
    """One finished cell."""

    key: str
    draft: RunDraft


class Journal:
    """One process's journal for one experiment; the lock on its file says that the process lives."""

    def __init__(self, path: Path, head: JournalHead, file: int, read_at: int, end: int) -> None:
        self.path = path
        self.head = head
        self._file = file
        self._start = _MARK_SIZE + len(_line(asdict(head)))
        self._read_at = read_at
        self._end = end
        self._places = threading.Lock()  # one thread appends, another delivers
        self._synced = 0.0

    @classmethod
    def create(cls, folder: Path, head: JournalHead, name: str) -> "Journal":
        make_private_folder(folder)
        path = folder / f"{_place(head.address, head.experiment)}-{name}.jsonl"
        scratch = path.with_suffix(".part")  # nobody adopts it before it is locked
        file = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(file)  # nobody else has opened it
        line = _line(asdict(head))
        start = _MARK_SIZE + len(line)
        os.pwrite(file, _MARK % start + line, 0)
        scratch.rename(path)
        return cls(path, head, file, start, start)

    @classmethod
    def adopt(cls, path: Path) -> "Journal | None":
        """The journal of a process that is gone; None while its process lives, or when another adopted it."""
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        if not try_lock(file):
            os.close(file)
            return None
        with os.fdopen(os.dup(file), "rb") as reader:
            reader.seek(0)
            mark, line = reader.readline(), reader.readline()
        if not line.endswith(b"\n") or not path.exists():  # killed before it held anything
            path.unlink(missing_ok=True)
            os.close(file)
            return None
        head = JournalHead(**json.loads(line))
        end = _whole_lines(file, _MARK_SIZE + len(line))
        return cls(path, head, file, min(int(mark.split()[1]), end), end)

    def append(self, entry: Entry) -> None:
        own = {name: text for name, text in entry.draft.texts.items() if name not in self.head.shared_texts}
        data = {"key": entry.key, "draft": {**vars(entry.draft), "texts": own}}
        line = _line(data)
        with self._places:
            if os.pwrite(self._file, line, self._end) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            self._end += len(line)
        if time.monotonic() - self._synced > _SYNC_EVERY_S:
            os.fdatasync(self._file)
            self._synced = time.monotonic()

    def waiting(self, most: int) -> list[tuple[Entry, int]]:
        """The next entries that are not delivered, each with the place behind it; at most so many."""
        found: list[tuple[Entry, int]] = []
        at = self._read_at
        with os.fdopen(os.dup(self._file), "rb") as reader:
            reader.seek(at)
            while len(found) < most and at < self._end:
                line = reader.readline()
                at += len(line)
                found.append((self._entry(json.loads(line)), at))
        return found

    def delivered(self, place: int) -> None:
        """Everything before this place is in MLflow."""
        with self._places:
            if place == self._end:
                # The mark last: killed in between, it points behind the end, and nothing waits, as it should be.
                os.ftruncate(self._file, self._start)
                self._end = place = self._start
            os.pwrite(self._file, _MARK % place, 0)
            self._read_at = place

    def count_waiting(self) -> int:
        with self._places:
            return sum(chunk.count(b"\n") for chunk in _chunks(self._file, self._read_at, self._end))

    @property
    def is_delivered(self) -> bool:
        return self._read_at >= self._end

    def close(self) -> None:
        if self.is_delivered:
            self.path.unlink(missing_ok=True)
        else:
            os.fsync(self._file)
        os.close(self._file)

    def _entry(self, data: dict[str, Any]) -> Entry:
        draft = data["draft"]
        return Entry(data["key"], RunDraft(**{**draft, "texts": {**draft["texts"], **self.head.shared_texts}}))


def _line(data: Any) -> bytes:
    return (json.dumps(data) + "\n").encode()


def _chunks(file: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        chunk = os.pread(file, min(_CHUNK, end - start), start)
        yield chunk
        start += len(chunk)


def _whole_lines(file: int, start: int) -> int:
    """Where the last whole line ends: a line without its end was never finished."""
    end, at = start, start
    for chunk in _chunks(file, start, os.fstat(file).st_size):
        if b"\n" in chunk:
            end = at + chunk.rfind(b"\n") + 1
        at += len(chunk)
    return end


def left_behind(folder: Path, address: str | None = None, experiment: str | None = None) -> Iterator[Journal]:
    """The journals of processes that are gone, for one experiment or for all."""
    pattern = f"{_place(address, experiment)}-*.jsonl" if address and experiment else "*.jsonl"
    for path in sorted(folder.glob(pattern)):
        journal = Journal.adopt(path)
        if journal:
            yield journal


def _place(address: str, experiment: str) -> str:
    return data_digest([address, experiment])[:24]
