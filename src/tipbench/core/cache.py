"""Caches: in memory, of the entries that were used last, and on disk, of what may be gone or damaged at any time."""

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
    """Entries by key; beyond `most`, the one that nobody has used for longest goes. Safe for many threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str) -> Value | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def get_or_make(self, key: str, make: Callable[[], Value]) -> Value:
        """The entry, made if it is missing; `make` is to be quick, others wait for it."""
        with self._lock:
            if key not in self._entries:
                self._entries[key] = make()
            return self._used(key)

    def add(self, key: str, value: Value) -> Value:
        """Add an entry unless another thread was quicker; returns the one that is there now."""
        return self.get_or_make(key, lambda: value)

    def drop(self, key: str) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def _used(self, key: str) -> Value:
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return self._entries[key]


class DiskCache:
    """Data in compressed files behind a digest; whatever is wrong with a file counts as nothing cached.

    Beyond `most` files, those that nobody has used for longest are removed, also what killed writers left.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most

    def load(self, name: str) -> Any:
        """The data that was saved under this name; None if there is none."""
        path = self._folder / name
        try:
            digest, _, payload = path.read_bytes().partition(b"\n")
            if digest != sha256(payload).hexdigest().encode():
                return None
            os.utime(path)  # what is used is not among the oldest
            return json.loads(zlib.decompress(payload))
        except (OSError, zlib.error, ValueError, RecursionError):
            return None

    def save(self, name: str, data: Any) -> None:
        """Save the data, if that is possible."""
        with suppress(OSError, ValueError):
            payload = zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), level=1)
            make_private_folder(self._folder)
            atomic_write(self._folder / name, sha256(payload).hexdigest().encode() + b"\n" + payload, mode=PRIVATE)
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        by_age = sorted((-path.stat().st_mtime, path) for path in self._folder.iterdir())
        for _, path in by_age[self._most :]:
            path.unlink(missing_ok=True)
