"""The server's store: chosen once at startup, opened on first use."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tipbench.bench.bench import Bench
from tipbench.bench.context import Context
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import NothingStored
from tipbench.core.paths import snapshot_folder
from tipbench.core.settings import Settings
from tipbench.core.sqlite import BUSY_S


class StoreObserver(Protocol):
    """Is told how long the store takes."""

    def observe_store(self, operation: str, seconds: float) -> None: ...

    def count_store_error(self) -> None:
        """Count an error of what nobody asked for: those of requests are counted where they are answered."""
        ...


class StoreProvider:
    """Provides one store to all threads. A database file that doesn't exist yet means that nothing is stored."""

    def __init__(
        self,
        address: str,
        settings: Settings,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        observer: StoreObserver | None = None,
    ) -> None:
        self.address = address
        self.settings = settings
        self.clock = clock
        self.new_id = new_id
        self._observer = observer
        self._lock = threading.Lock()
        self._store: RunStore | None = None
        self._file_id: tuple[int, int] | None = None

    def store(self) -> RunStore:
        """Return the store, reopened if its file was replaced; raise NothingStored before the first run."""
        with self._lock:
            file_id = self._read_file_id()
            if self._store is None or file_id != self._file_id:  # the database file was replaced
                if self._store:
                    self._store.close()
                    self._store = None
                self._store = open_store(self.address, self.settings, busy_s=BUSY_S).store
                self._file_id = file_id
            return self._store

    def store_if_any(self) -> RunStore | None:
        try:
            return self.store()
        except NothingStored:
            return None

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        """Tell the observer how long the block takes, whether or not it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            if self._observer:
                self._observer.observe_store(operation, time.perf_counter() - start)

    def count_error(self) -> None:
        if self._observer:
            self._observer.count_store_error()

    def bench(self, experiment: str, **options: Any) -> Bench:
        """Return the bench of one experiment on this store."""
        context = Context(self.settings, clock=self.clock, new_id=self.new_id, store=self.store())
        return Bench(experiment, context=context, **options)

    @property
    def snapshots(self) -> Path:
        return snapshot_folder(self.settings.home)

    def close(self) -> None:
        with self._lock:
            if self._store:
                self._store.close()
                self._store = None

    def _read_file_id(self) -> tuple[int, int] | None:
        if not self.address.startswith(SCHEME):
            return None
        path = Path(self.address.removeprefix(SCHEME))
        try:
            status = path.stat()
        except OSError:
            raise NothingStored(
                f"there are no results yet: {self.address} does not exist; the first run creates it"
            ) from None
        return status.st_dev, status.st_ino
