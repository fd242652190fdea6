"""Lists of records that are written once: each file is read when it is new, and never again."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from tipbench.core.errors import NotFound

_ID = "[0-9a-f]" * 16 + ".json"
_Mark = tuple[int, int]
Line = TypeVar("Line")


class RecordIndex(Generic[Line]):
    """A line for each record of a folder, in no order. Safe to be asked by many threads."""

    def __init__(self, folder: Path, line_of: Callable[[str], Line]) -> None:
        self._folder = folder
        self._line_of = line_of
        self._turn = threading.Lock()
        self._lines: dict[str, tuple[_Mark, Line]] = {}

    def read(self) -> list[Line]:
        with self._turn:
            found: dict[str, tuple[_Mark, Line]] = {}
            for path in self._folder.glob(_ID):
                with suppress(FileNotFoundError, NotFound):  # somebody has just removed it
                    found[path.stem] = self._known(path)
            self._lines = found
            return [line for _, line in found.values()]

    def _known(self, path: Path) -> tuple[_Mark, Line]:
        stat = path.stat()
        mark = (stat.st_mtime_ns, stat.st_size)
        known = self._lines.get(path.stem)
        return known if known and known[0] == mark else (mark, self._line_of(path.stem))
