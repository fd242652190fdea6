"""Reads a log that only grows, again and again: each time on from where it was."""

import threading
from abc import ABC, abstractmethod
from pathlib import Path

from tipbench.recommender.log.segmented_log import segments


class LogTailer(ABC):
    """Safe to be asked by many threads, if they take `_turn` for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = threading.Lock()
        self._ends: dict[str, int] = {}  # how far each file was read
        self._begin()

    def _read_on(self) -> None:
        found = segments(self._folder)
        if not self._ends.keys() <= {path.name for path in found}:  # somebody took a file away
            self._ends = {}
            self._begin()
        for path in found:
            self._read(path)

    @abstractmethod
    def _begin(self) -> None:
        """Knows nothing yet."""

    @abstractmethod
    def _read(self, path: Path) -> None:
        """Takes in what was added to this file, and remembers in `_ends` where that ends."""
