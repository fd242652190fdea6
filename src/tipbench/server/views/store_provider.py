"""The store that the server works on. It is chosen once, at the start, and opened when somebody needs it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tipbench.bench.bench import Bench
from tipbench.bench.context import Context
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import NothingStored
from tipbench.core.paths import snapshot_folder
from tipbench.core.settings import Settings
from tipbench.core.sqlite import BUSY_S


class StoreProvider:
    """One store for all threads; a database file that isn't there yet is nothing stored, and no error."""

    def __init__(self, address: str, settings: Settings, clock: Callable[[], float], new_id: Callable[[], str]) -> None:
        self.address = address
        self.settings = settings
        self.clock = clock
        self.new_id = new_id
        self._opening = threading.Lock()
        self._store: RunStore | None = None
        self._file: tuple[int, int] | None = None

    def store(self) -> RunStore:
        """Raises NothingStored before the first run."""
        with self._opening:
            file = self._identity()
            if self._store is None or file != self._file:  # a database that was put in its place is another one
                if self._store:
                    self._store.close()
                    self._store = None
                self._store = open_store(self.address, self.settings, busy_s=BUSY_S).store
                self._file = file
            return self._store

    def store_if_any(self) -> RunStore | None:
        try:
            return self.store()
        except NothingStored:
            return None

    def bench(self, experiment: str, **options: Any) -> Bench:
        """The bench of one experiment, on this store."""
        context = Context(self.settings, clock=self.clock, new_id=self.new_id, store=self.store())
        return Bench(experiment, context=context, **options)

    @property
    def snapshots(self) -> Path:
        return snapshot_folder(self.settings.home)

    def close(self) -> None:
        with self._opening:
            if self._store:
                self._store.close()
                self._store = None

    def _identity(self) -> tuple[int, int] | None:
        if not self.address.startswith(SCHEME):
            return None
        path = Path(self.address.removeprefix(SCHEME))
        try:
            found = path.stat()
        except OSError:
            raise NothingStored(f"there are no results yet: {self.address} does not exist; a run makes it") from None
        return found.st_dev, found.st_ino
