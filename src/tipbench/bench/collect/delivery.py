"""Delivers finished cells from the journal to MLflow in a background thread, so that generating never waits for it."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf

from tipbench.bench.collect.journal import Entry, Journal, orphaned_journals
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import TipbenchError, TrackingUnreachable
from tipbench.core.paths import journal_folder
from tipbench.core.settings import Settings

_BATCH_SIZE = 1_024  # cells that are read from the journal at a time, so that files are written beside transactions
_BATCH_SIZE_OF_SERVER = 256  # the same, where each cell takes requests: after a kill, each of these has to be looked up
_GATHER_S = 0.1  # how long to wait for more cells, so that a quick engine's share a transaction
_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0)  # between attempts while MLflow is unreachable; the last one repeats
PATIENCE_S = 15.0  # how long to wait for an unreachable MLflow after all cells are done
HURRY_S = 2.0  # the same, after an error or Ctrl-C
KEEP_UP_S = 600.0  # the same, if each cell must be delivered before the next one is generated
STUCK_S = 5.0  # the same, after Ctrl-C, for an MLflow that accepted a request and does not answer
_POLL_S = 0.02


@dataclass
class DeliveryResult:
    """What was delivered so far, how often MLflow was unreachable, and the error that ended the delivery."""

    cells: int = 0
    outages: int = 0
    error: Exception | None = None


class Delivery:
    """A thread that delivers until `finish` is called. It retries while MLflow is unreachable; other errors end it."""

    def __init__(
        self,
        journal: Journal,
        store: RunStore,
        experiment: Callable[[], Experiment],
        check_first: bool = False,
        gather_s: float = _GATHER_S,
    ) -> None:
        self.result = DeliveryResult()
        self._journal = journal
        self._store = store
        self._find_experiment = experiment
        self._found: Experiment | None = None
        self._check = check_first
        self._gather_s = gather_s
        self._batch_size = _BATCH_SIZE_OF_SERVER if store.is_shared else _BATCH_SIZE
        self._wake_up = threading.Event()
        self._no_more = threading.Event()
        self._give_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Signal that the journal has a new entry."""
        self._wake_up.set()

    def finish(self, patience_s: float = PATIENCE_S, stuck_s: float = inf) -> DeliveryResult:
        """Wait until all is delivered, or MLflow was unreachable for `patience_s`; the rest stays in the journal.

        If nothing was delivered for `stuck_s`, return although the thread is still running (see `is_running`).
        """
        self._no_more.set()
        self._wake_up.set()
        waited = stuck = 0.0
        delivered = self.result.cells
        while self.is_running and stuck < stuck_s:
            self._thread.join(0.1)
            waited = waited + 0.1 if self._check else 0.0  # give up only on an unreachable MLflow
            if waited > patience_s:
                self._give_up.set()
            stuck = stuck + 0.1 if self.result.cells == delivered else 0.0
            delivered = self.result.cells
        return self.result

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            with self._store.session():
                self._deliver_all()
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            self.result.error = error

    def _deliver_all(self) -> None:
        while not self._give_up.is_set() and self.result.error is None:
            no_more = self._no_more.is_set()  # read before the journal: an entry added in between is found next time
            pending = self._journal.pending(self._batch_size)
            if pending:
                self._deliver([entry for entry, _ in pending], pending[-1][1])
            elif no_more:
                return
            else:
                self._wake_up.wait()
                self._wake_up.clear()
            if len(pending) < self._batch_size:
                self._no_more.wait(self._gather_s)

    def _deliver(self, entries: list[Entry], offset: int) -> None:
        for attempt in count():
            try:
                experiment = self._experiment()
                missing = self._missing(experiment, entries) if self._check or self._journal.is_copy else entries
                self._store.write_runs(experiment, [entry.draft for entry in missing], self._count)
            except TrackingUnreachable:
                # Runs in transit may have arrived: from now on, check before writing.
                self.result.outages += not self._check
                self._check = True
                if self._give_up.wait(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]):
                    return
                continue
            self._check = False
            self._journal.mark_delivered(offset)
            return

    def _count(self, cells: int) -> None:
        self.result.cells += cells

    def _experiment(self) -> Experiment:
        """Return the experiment, finding or creating it on first use: MLflow may need seconds to create a database."""
        self._found = self._found or self._find_experiment()
        return self._found

    def _missing(self, experiment: Experiment, entries: list[Entry]) -> list[Entry]:
        """Return the entries that are not in MLflow; partly written runs of them are removed."""
        missing = []
        for entry in entries:
            found = self._store.all_runs(experiment, {KIND: CELL, "tipbench.cell_key": entry.key})
            started = [run for run in found if run.started_ms == entry.draft.started_ms]
            for run in started:
                if run.status == "RUNNING":
                    self._store.remove_run(run)
            if not any(run.status != "RUNNING" for run in started):
                missing.append(entry)
        return missing


@contextmanager
def open_cell_writer(
    journal: Journal, store: RunStore, experiment: Callable[[], Experiment], keep_up: bool = False
) -> Iterator["CellWriter"]:
    """Yield a writer that journals cells, and deliver them in the background; at the end, wait for the last ones.

    With `keep_up`, each write waits until its cell is delivered, so that hardly anything exists only on this disk.
    """
    delivery = Delivery(journal, store, experiment, gather_s=0 if keep_up else _GATHER_S)
    delivery.start()
    writer = CellWriter(journal, delivery, KEEP_UP_S if keep_up else None)
    limits = (HURRY_S, inf)
    try:
        yield writer
        limits = (PATIENCE_S, inf)
    except KeyboardInterrupt:
        limits = (HURRY_S, STUCK_S)
        raise
    finally:
        try:
            result = delivery.finish(*limits)
        except KeyboardInterrupt:
            delivery.finish(HURRY_S, STUCK_S)
            raise
        finally:
            writer.undelivered = journal.count_pending()
            if not delivery.is_running:  # otherwise it ends with the process, which is about to exit
                journal.close()
    if result.error:
        raise result.error


class CellWriter:
    """Writes the loop's cells to the journal and wakes the delivery."""

    def __init__(self, journal: Journal, delivery: Delivery, keep_up_s: float | None = None) -> None:
        self.undelivered = 0
        self._keep_up_s = keep_up_s
        self.delivered = delivery.result
        self._journal = journal
        self._delivery = delivery

    def write(self, entries: Sequence[Entry]) -> None:
        if self.delivered.error:
            raise self.delivered.error
        self._journal.append(*entries)
        self._delivery.wake()
        if self._keep_up_s is not None:
            self._wait_until_delivered(self._keep_up_s)

    def _wait_until_delivered(self, patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while not self._journal.is_delivered and not self.delivered.error:
            if time.monotonic() > until:
                raise TrackingUnreachable(
                    f"MLflow has not taken a cell for {patience_s:g} s, so collecting was stopped before it fills "
                    "this disk; make MLflow reachable and run the same command again"
                )
            time.sleep(_POLL_S)
        if self.delivered.error:
            raise self.delivered.error


def deliver_orphaned(journals: Iterable[Journal], store: RunStore) -> DeliveryResult:
    """Deliver the journals of processes that are gone; raise TrackingUnreachable if MLflow can't be reached."""
    total = DeliveryResult()
    for journal in journals:
        head = journal.head
        experiment = partial(store.ensure_experiment, head.experiment, {"tipbench.suite": head.suite})
        delivery = Delivery(journal, store, experiment, check_first=True)
        delivery.start()
        result = delivery.finish()
        if result.error:
            raise result.error
        if not journal.is_delivered:
            raise TrackingUnreachable(
                f"{journal.count_pending()} cells are not delivered yet: MLflow at {store.address} does not answer"
            )
        journal.close()
        total.cells += result.cells
    return total


@dataclass(frozen=True)
class SyncResult:
    """The result of delivering one journal."""

    experiment: str
    address: str
    cells: int
    problem: str = ""  # why it is still undelivered


def deliver_all(settings: Settings) -> Iterator[SyncResult]:
    """Deliver what every collection of this home left behind, each to its own store."""
    for journal in orphaned_journals(journal_folder(settings.home)):
        head = journal.head
        try:
            opened = open_store(head.address, settings, create=True)
            try:
                delivered = deliver_orphaned([journal], opened.store)
            finally:
                opened.store.close()
        except TipbenchError as error:
            journal.close()
            yield SyncResult(head.experiment, head.address, 0, str(error))
        else:
            yield SyncResult(head.experiment, head.address, delivered.cells)
