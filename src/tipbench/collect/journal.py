"""The journal: what was generated and is not in MLflow yet, in a file that survives a kill.

A line a cell, written as soon as the cell is done; the tracking side reads along behind it. So generating never waits
for MLflow, memory stays constant, and an answer outlives a server that is down. The first line holds, at a fixed place,
how far the reading side has got. A journal that is delivered in full is removed.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tipbench.identity import data_digest
from tipbench.tracking.store import RunDraft

_MARK = b"done %020d\n"
_MARK_SIZE = len(_MARK % 0)


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
        self._read_at = read_at
        self._end = end

    @classmethod
    def create(cls, folder: Path, head: JournalHead, name: str) -> "Journal":
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{_place(head.address, head.experiment)}-{name}.jsonl"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        line = (json.dumps(asdict(head)) + "\n").encode()
        start = _MARK_SIZE + len(line)
        os.pwrite(file, _MARK % start + line, 0)
        return cls(path, head, file, start, start)

    @classmethod
    def adopt(cls, path: Path) -> "Journal | None":
        """The journal of a process that is gone; None while its process lives, or when another adopted it."""
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        content = os.pread(file, os.fstat(file).st_size, 0)
        lines = content.split(b"\n", 2)
        if len(lines) < 3 or not path.exists():  # killed before it held anything
            path.unlink(missing_ok=True)
            os.close(file)
            return None
        head = JournalHead(**json.loads(lines[1]))
        whole = content.rfind(b"\n") + 1  # a line without its end was never finished
        return cls(path, head, file, int(lines[0].split()[1]), whole)

    def append(self, entry: Entry) -> None:
        own = {name: text for name, text in entry.draft.texts.items() if name not in self.head.shared_texts}
        data = {"key": entry.key, "draft": {**asdict(entry.draft), "texts": own}}
        line = (json.dumps(data) + "\n").encode()
        os.pwrite(self._file, line, self._end)
        self._end += len(line)

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
        os.pwrite(self._file, _MARK % place, 0)
        self._read_at = place

    def count_waiting(self) -> int:
        content = os.pread(self._file, self._end - self._read_at, self._read_at)
        return content.count(b"\n")

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


def left_behind(folder: Path, address: str | None = None, experiment: str | None = None) -> Iterator[Journal]:
    """The journals of processes that are gone, for one experiment or for all."""
    pattern = f"{_place(address, experiment)}-*.jsonl" if address and experiment else "*.jsonl"
    for path in sorted(folder.glob(pattern)):
        journal = Journal.adopt(path)
        if journal:
            yield journal


def _place(address: str, experiment: str) -> str:
    return data_digest([address, experiment])[:24]
