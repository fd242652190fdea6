"""The journal: a file of cells that were generated and are not in MLflow yet; it survives a kill.

Each cell is appended as one line as soon as it is done; the delivery reads behind the writer. So generating never waits
for MLflow, memory stays constant, and answers survive a server that is down. The first line has a fixed length and
holds the offset up to which entries are delivered. Whenever everything is delivered, the file is truncated to its head,
so that it stays small; at the end it is removed.
"""

import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from tipbench.bench.tracking.store import RunDraft
from tipbench.core.files import make_private_folder
from tipbench.core.identity import data_digest
from tipbench.core.locks import lock_until, try_lock
from tipbench.core.untrusted import json_data

_OFFSET_LINE = b"%b %020d\n"
_OWN, _COPY = b"done", b"copy"
_OFFSET_LINE_SIZE = len(_OFFSET_LINE % (_OWN, 0))
_CHUNK = 1 << 20
_PROBE_S = 0.05  # longer than `undelivered` holds a lock
_SYNC_EVERY_S = 1.0  # a kill loses nothing; a power cut loses at most one second


@dataclass(frozen=True)
class JournalHead:
    """The destination of the entries, and the texts that all of them share, which are stored only here."""

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
    """One process's journal for one experiment; the process holds a lock on the file while it is alive."""

    def __init__(
        self, path: Path, head: JournalHead, file: int, start: int, read_at: int, end: int, is_copy: bool = False
    ) -> None:
        """Entries begin at `start`. `is_copy`: MLflow may have any of them, whatever the offset says."""
        self.path = path
        self.head = head
        self.is_copy = is_copy
        self._file = file
        self._start = start
        self._read_at = read_at
        self._end = end
        self._offsets_lock = threading.Lock()  # one thread appends, another delivers
        self._synced = 0.0

    @classmethod
    def create(cls, folder: Path, head: JournalHead, name: str) -> "Journal":
        make_private_folder(folder)
        path = folder / f"{_file_prefix(head.address, head.experiment)}-{name}.jsonl"
        scratch = path.with_suffix(".part")  # so that nobody adopts it before it is locked
        file = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(file)  # always succeeds: nobody else has opened it
        line = _line(asdict(head))
        start = _OFFSET_LINE_SIZE + len(line)
        os.pwrite(file, _OFFSET_LINE % (_OWN, start) + line, 0)
        scratch.rename(path)
        return cls(path, head, file, start, start, start)

    @classmethod
    def adopt(cls, path: Path) -> "Journal | None":
        """Take over the journal of a dead process; None while that process is alive, or if another adopted it."""
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        if not lock_until(file, time.monotonic() + _PROBE_S):
            os.close(file)
            return None
        with os.fdopen(os.dup(file), "rb") as reader:
            reader.seek(0)
            offset_line, line = reader.readline(), reader.readline()
        if not line.endswith(b"\n") or not path.exists():  # its process was killed before it wrote an entry
            path.unlink(missing_ok=True)
            os.close(file)
            return None
        head = JournalHead(**json.loads(line))
        start = _OFFSET_LINE_SIZE + len(line)
        end = _end_of_complete_lines(file, start)
        word, offset = offset_line.split()
        return cls(path, head, file, start, min(int(offset), end), end, is_copy=word == _COPY)

    def append(self, *entries: Entry) -> None:
        """Append all of the entries, or none."""
        lines = b"".join(map(self._line_of, entries))
        with self._offsets_lock:
            if os.pwrite(self._file, lines, self._end) < len(lines):
                os.ftruncate(self._file, self._end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            self._end += len(lines)
        if time.monotonic() - self._synced > _SYNC_EVERY_S:
            os.fdatasync(self._file)
            self._synced = time.monotonic()

    def _line_of(self, entry: Entry) -> bytes:
        own = {name: text for name, text in entry.draft.texts.items() if name not in self.head.shared_texts}
        return _line({"key": entry.key, "draft": {**vars(entry.draft), "texts": own}})

    def pending(self, limit: int) -> list[tuple[Entry, int]]:
        """Return up to `limit` undelivered entries, each with the offset of its end."""
        found: list[tuple[Entry, int]] = []
        at = self._read_at
        with os.fdopen(os.dup(self._file), "rb") as reader:
            reader.seek(at)
            while len(found) < limit and at < self._end:
                line = reader.readline()
                at += len(line)
                found.append((self._entry(json_data(line)), at))
        return found

    def mark_delivered(self, offset: int) -> None:
        """Record that everything before this offset is in MLflow."""
        with self._offsets_lock:
            if offset == self._end:
                # Write the offset last: after a kill in between, it is past the end, so nothing is pending, correctly.
                os.ftruncate(self._file, self._start)
                self._end = offset = self._start
            os.pwrite(self._file, _OFFSET_LINE % (_COPY if self.is_copy else _OWN, offset), 0)
            self._read_at = offset

    def count_pending(self) -> int:
        with self._offsets_lock:
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
    try:
        return to_json(data) + b"\n"  # in half of the time that the standard library takes
    except ValueError:  # a lone surrogate
        return (json.dumps(data) + "\n").encode()


def _chunks(file: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        chunk = os.pread(file, min(_CHUNK, end - start), start)
        yield chunk
        start += len(chunk)


def _end_of_complete_lines(file: int, start: int) -> int:
    """Return the offset of the end of the last complete line: a line without a newline was never finished."""
    end, at = start, start
    for chunk in _chunks(file, start, os.fstat(file).st_size):
        if b"\n" in chunk:
            end = at + chunk.rfind(b"\n") + 1
        at += len(chunk)
    return end


def orphaned_journals(folder: Path, address: str | None = None, experiment: str | None = None) -> Iterator[Journal]:
    """Adopt and yield the journals of processes that are gone, for one experiment or for all."""
    pattern = f"{_file_prefix(address, experiment)}-*.jsonl" if address and experiment else "*.jsonl"
    for path in sorted(folder.glob(pattern)):
        journal = Journal.adopt(path)
        if journal:
            yield journal


class Undelivered(NamedTuple):
    """A journal, and what of it MLflow does not have yet."""

    cells: int
    written_s: float  # when it was last written to, in seconds since 1970
    in_use: bool  # its process is alive, or another one delivers it


def undelivered(folder: Path) -> list[Undelivered]:
    """Return all journals, whoever writes them; nothing is changed."""
    found = [_undelivered(path) for path in folder.glob("*.jsonl")]
    return [one for one in found if one]


def _undelivered(path: Path) -> Undelivered | None:
    """Return what waits in a journal; None if it is gone, because it was delivered meanwhile, or is none of ours."""
    with suppress(FileNotFoundError, ValueError, IndexError), path.open("rb") as file:
        offset_line = file.readline()  # empty if a power cut took the content
        start = int(offset_line.split()[1]) if offset_line.endswith(b"\n") else 0
        status = os.fstat(file.fileno())
        cells = sum(chunk.count(b"\n") for chunk in _chunks(file.fileno(), start, status.st_size))
        return Undelivered(cells, status.st_mtime, in_use=not try_lock(file, shared=True))
    return None


def _file_prefix(address: str, experiment: str) -> str:
    return data_digest([address, experiment])[:24]


# Copies of journals, whose processes may be at work


def copy_journal(source: Path, target: Path) -> bool:
    """Copy a journal; return False if it holds nothing yet. Raises FileNotFoundError if it is delivered meanwhile.

    In the copy nothing counts as delivered, and whoever adopts it looks each cell up: by then, MLflow may have any of
    them. While the file is read it may be truncated and begun anew, which would join a piece of one entry to a piece of
    another. A copy is whole if, after it was made, the file still begins with all of it.
    """
    while True:
        shutil.copyfile(source, target)
        if _begins_with(source, target):
            break
    file = os.open(target, os.O_RDWR)
    try:
        with os.fdopen(os.dup(file), "rb") as reader:
            reader.seek(_OFFSET_LINE_SIZE)
            head = reader.readline()
        start = _OFFSET_LINE_SIZE + len(head)
        os.ftruncate(file, _end_of_complete_lines(file, start))
        os.pwrite(file, _OFFSET_LINE % (_COPY, start), 0)
        return head.endswith(b"\n") and os.fstat(file).st_size > start
    finally:
        os.close(file)


def _begins_with(source: Path, copy: Path) -> bool:
    """Return whether the source begins with the copy, but for the offset line."""
    with source.open("rb") as now, copy.open("rb") as then:
        now.seek(_OFFSET_LINE_SIZE)
        then.seek(_OFFSET_LINE_SIZE)
        while chunk := then.read(_CHUNK):
            if now.read(len(chunk)) != chunk:
                return False
    return True


def readdress_copy(path: Path, address: Callable[[str], str]) -> None:
    """Change the address of the store in a copied journal, and with it the file's name."""
    with path.open("rb") as journal:
        journal.readline()
        head = JournalHead(**json.loads(journal.readline()))
        moved = replace(head, address=address(head.address))
        name = path.name.replace(
            _file_prefix(head.address, head.experiment), _file_prefix(moved.address, head.experiment)
        )
        line = _line(asdict(moved))
        with path.with_name(f".{name}.part").open("wb") as target:
            target.write(_OFFSET_LINE % (_COPY, _OFFSET_LINE_SIZE + len(line)) + line)
            shutil.copyfileobj(journal, target)
    path.unlink()
    path.with_name(f".{name}.part").rename(path.with_name(name))
