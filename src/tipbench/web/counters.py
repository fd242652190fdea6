"""Sums that all processes of a server add to, in memory that they share.

The memory has no name and is nobody's file: it ends with the last process, and a full disk can't touch it. Each process
adds to numbers of its own, so that adding takes no lock between processes, and what a killed one has added stays. Its
successor continues with the same numbers.
"""

import fcntl
import json
import logging
import mmap
import os
import struct
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from typing import Any

Key = tuple[str, ...]
_BYTES = 1 << 23  # only what is used takes memory
_HEAD = struct.Struct("=II")  # of an entry: the bytes of its key, and how many numbers each process has
_USED = 0  # the word that says how many words are used
_SCRAP = 1  # these words are added to and never read
_FIRST = 64
_LOCK_TIMEOUT_S = 1.0  # its holder may be frozen
_log = logging.getLogger(__name__)


class SharedCounters:
    """Thread-safe. To be passed to processes as they are started."""

    def __init__(self, processes: int = 1) -> None:
        file = os.memfd_create("tipbench counters")
        os.ftruncate(file, _BYTES)
        self._open(file, processes, process=0)
        self._words[_USED] = _FIRST

    def _open(self, file: int, processes: int, process: int) -> None:
        self._file, self._processes, self._process = file, processes, process
        weakref.finalize(self, os.close, file)
        self._bytes = memoryview(mmap.mmap(file, _BYTES))
        self._words, self._numbers = self._bytes.cast("Q"), self._bytes.cast("d")
        self._lock = threading.Lock()
        self._starts: dict[Key, int] = {}  # of this process's numbers
        self._sizes: dict[Key, int] = {}
        self._groups: Counter[str] = Counter()  # members by group
        self._read_to = _FIRST

    def of_process(self, process: int) -> "SharedCounters":
        """Return the same sums, for the process of this number. No two that run may have the same."""
        return _opened(os.dup(self._file), self._processes, process)

    def __reduce__(self) -> tuple[Any, ...]:
        """For `multiprocessing`, which gives a process that it starts a duplicate of the file."""
        return _received, (DupFd(self._file), self._processes, self._process)

    def add(self, key: Key, amount: float = 1.0) -> None:
        """Add to the number of this key."""
        start = self._starts.get(key) or self._start(key, 1)
        with self._lock:
            self._numbers[start] += amount

    def observe(self, key: Key, size: int, position: int, amount: float) -> None:
        """Add the amount to the first of this key's numbers, and 1 to the one at the position; there are `size`."""
        start = self._starts.get(key) or self._start(key, size)
        with self._lock:
            self._numbers[start] += amount
            self._numbers[start + position] += 1.0

    def is_member(self, group: str, name: str, limit: int) -> bool:
        """Return whether a name is one of the group's: the first so many that any process has asked for."""
        key = (group, name)
        if key in self._starts:
            return True
        if self._groups[group] >= limit:
            return False
        with self._exclusive() as locked:
            if locked and key not in self._starts and self._groups[group] < limit:
                self._append(key, 0)
        return key in self._starts

    def sums(self) -> dict[Key, list[float]]:
        """Return the numbers of every key, each summed over all processes."""
        with self._exclusive():
            sizes = dict(self._sizes)
        return {key: self._sum(key, size) for key, size in sizes.items() if size}

    def _sum(self, key: Key, size: int) -> list[float]:
        first = self._starts[key] - self._process * size
        columns = [self._numbers[first + process * size :][:size] for process in range(self._processes)]
        return [sum(numbers) for numbers in zip(*columns, strict=True)]

    def _start(self, key: Key, size: int) -> int:
        """Return where this process's numbers of a key begin, which is added if it is new."""
        with self._exclusive() as locked:
            if locked and key not in self._starts:
                self._append(key, size)
        return self._starts.get(key, _SCRAP)

    def _append(self, key: Key, size: int) -> None:
        text = json.dumps(key).encode()
        end = self._read_to + 1 + -(-len(text) // 8) + self._processes * size
        if end > len(self._words):
            _log.error("there is no room to count %s", key)  # can't be: all labels are bounded
            self._starts[key] = _SCRAP
            return
        at = self._read_to * 8
        self._bytes[at : at + 8] = _HEAD.pack(len(text), size)
        self._bytes[at + 8 : at + 8 + len(text)] = text
        self._words[_USED] = end  # last: whoever is killed before has added nothing
        self._read_new()

    def _read_new(self) -> None:
        """Read the keys that any process has added."""
        used = self._words[_USED]
        while self._read_to < used:
            at = self._read_to * 8
            length, size = _HEAD.unpack(self._bytes[at : at + 8])
            key = tuple(json.loads(bytes(self._bytes[at + 8 : at + 8 + length])))
            first = self._read_to + 1 + -(-length // 8)
            self._sizes[key] = size
            self._starts[key] = first + self._process * size
            self._groups[key[0]] += not size
            self._read_to = first + self._processes * size

    @contextmanager
    def _exclusive(self) -> Iterator[bool]:
        """Let no thread and no process add a key, and know all that there are; yield False if a process hangs."""
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        with self._lock:
            while not (locked := _try_lock(self._file)) and time.monotonic() < deadline:
                time.sleep(0.001)
            try:
                if locked:
                    self._read_new()
                yield locked
            finally:
                if locked:
                    fcntl.lockf(self._file, fcntl.LOCK_UN)


def _opened(file: int, processes: int, process: int) -> SharedCounters:
    counters = SharedCounters.__new__(SharedCounters)
    counters._open(file, processes, process)
    return counters


def _received(duplicate: Any, processes: int, process: int) -> SharedCounters:
    return _opened(duplicate.detach(), processes, process)


def _try_lock(file: int) -> bool:
    """Lock between processes, which have duplicates of one open file: so by the process, not by the open file."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
