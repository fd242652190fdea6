"""Caches: an in-memory LRU cache, and a disk cache whose files may be missing or damaged at any time."""

import json
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

from tipbench.core.files import PRIVATE, atomic_write, make_private_folder

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """A thread-safe LRU cache: beyond `max_size`, the least recently used entries are evicted; the last one used stays.

    An entry's size is 1, or what `size_of` says.
    """

    def __init__(self, max_size: int, size_of: Callable[[Value], int] = lambda _: 1) -> None:
        self._max_size = max_size
        self._size_of = size_of
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str) -> Value | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def get_or_make(self, key: str, make: Callable[[], Value]) -> Value:
        """Return the entry, creating it if it is missing. `make` runs under the lock, so it must be quick."""
        with self._lock:
            if key not in self._entries:
                self._entries[key] = make()
            return self._touch(key)

    def add(self, key: str, value: Value) -> Value:
        """Add an entry unless another thread added one first; return the entry now in the cache."""
        return self.get_or_make(key, lambda: value)

    def drop(self, key: str) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def _touch(self, key: str) -> Value:
        self._entries.move_to_end(key)
        while len(self._entries) > 1 and sum(map(self._size_of, self._entries.values())) > self._max_size:
            self._entries.popitem(last=False)
        return self._entries[key]


class DiskCache:
    """Stores data in compressed files with a checksum; a file that is damaged in any way counts as a cache miss.

    Beyond `max_files`, the least recently used files are removed, including temporary files left by killed writers.
    """

    def __init__(self, folder: Path, max_files: int) -> None:
        self._folder = folder
        self._max_files = max_files

    def load(self, name: str) -> Any:
        """Return the data saved under this name, or None."""
        path = self._folder / name
        try:
            digest, _, payload = path.read_bytes().partition(b"\n")
            if digest != sha256(payload).hexdigest().encode():
                return None
            os.utime(path)  # mark it as recently used
            return json.loads(zlib.decompress(payload))
        except (OSError, zlib.error, ValueError, RecursionError):
            return None

    def save(self, name: str, data: Any) -> None:
        """Save the data, best effort: errors are ignored."""
        with suppress(OSError, ValueError):
            payload = zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), level=1)
            make_private_folder(self._folder)
            atomic_write(self._folder / name, sha256(payload).hexdigest().encode() + b"\n" + payload, mode=PRIVATE)
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        by_age = sorted((-path.stat().st_mtime, path) for path in self._folder.iterdir())
        for _, path in by_age[self._max_files :]:
            path.unlink(missing_ok=True)
