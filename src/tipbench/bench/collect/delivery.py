"""Carries finished cells from the journal to MLflow, in a thread of its own, so that generating never waits for it."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf

from tipbench.bench.collect.journal import Entry, Journal, left_behind
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND
from tipbench.bench.tracking.store import RunDraft, RunStore
from tipbench.core.errors import TipbenchError, TrackingUnreachable
from tipbench.core.paths import journal_folder
from tipbench.core.settings import Settings

_AT_ONCE = 64  # cells to a transaction
_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0)  # between tries while MLflow is away; the last one repeats
PATIENCE_S = 15.0  # for an MLflow that is away when all cells are done
HURRY_S = 2.0  # the same, when something went wrong or somebody pressed Ctrl-C
KEEP_UP_S = 600.0  # the same, when each cell has to be delivered before the next one is generated
STUCK_S = 5.0  # after Ctrl-C, for an MLflow that took a request and does not answer
_LOOK_EVERY_S = 0.02


@dataclass
class Delivered:
    """How it went."""

    cells: int = 0
    outages: int = 0
    error: Exception | None = None


class Delivery:
    """Runs until it is told that no more comes. MLflow being away is waited out; a refusal ends it."""

    def __init__(
        self, journal: Journal, store: RunStore, experiment: Callable[[], Experiment], check_first: bool = False
    ) -> None:
        self.result = Delivered()
        self._journal = journal
        self._store = store
        self._find_experiment = experiment
        self._found: Experiment | None = None
        self._check = check_first
        self._news = threading.Event()
        self._no_more = threading.Event()
        self._give_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something new stands in the journal."""
        self._news.set()

    def finish(self, patience_s: float = PATIENCE_S, stuck_s: float = inf) -> Delivered:
        """Waits until everything is delivered, or for so long while MLflow is away; the rest stays in the journal.

        When nothing was delivered for `stuck_s`, the thread is left to itself: `is_running` tells.
        """
        self._no_more.set()
        self._news.set()
        waited = stuck = 0.0
        delivered = self.result.cells
        while self.is_running and stuck < stuck_s:
            self._thread.join(0.1)
            waited = waited + 0.1 if self._check else 0.0  # only an MLflow that is away is given up on
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
        except Exception as error:  # noqa: BLE001 - whoever waits for this thread raises it again
            self.result.error = error

    def _deliver_all(self) -> None:
        while not self._give_up.is_set() and self.result.error is None:
            no_more = self._no_more.is_set()  # asked before reading: what comes in between is read next time
            waiting = self._journal.waiting(_AT_ONCE)
            if waiting:
                self._deliver([entry for entry, _ in waiting], waiting[-1][1])
            elif no_more:
                return
            else:
                self._news.wait()
                self._news.clear()

    def _deliver(self, entries: list[Entry], place: int) -> None:
        for attempt in count():
            try:
                experiment = self._experiment()
                missing = self._missing(experiment, entries) if self._check else entries
                self._store.write_runs(experiment, [entry.draft for entry in missing])
            except TrackingUnreachable:
                # What was on its way may have arrived: from now on look before writing.
                self.result.outages += not self._check
                self._check = True
                if self._give_up.wait(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]):
                    return
                continue
            self._check = False
            self.result.cells += len(missing)
            self._journal.delivered(place)
            return

    def _experiment(self) -> Experiment:
        """Made here and not before, if need be: MLflow may take seconds for its first database."""
        self._found = self._found or self._find_experiment()
        return self._found

    def _missing(self, experiment: Experiment, entries: list[Entry]) -> list[Entry]:
        """The entries that are not in MLflow; a run of one that was cut off halfway is removed."""
        missing = []
        for entry in entries:
            found = self._store.every_run(experiment, {KIND: CELL, "tipbench.cell_key": entry.key})
            started = [run for run in found if run.started_ms == entry.draft.started_ms]
            for run in started:
                if run.status == "RUNNING":
                    self._store.remove_run(run)
            if not any(run.status != "RUNNING" for run in started):
                missing.append(entry)
        return missing


@contextmanager
def delivering(
    journal: Journal, store: RunStore, experiment: Callable[[], Experiment], keep_up: bool = False
) -> Iterator["Keeper"]:
    """Keeps cells in the journal and delivers them beside; at the end waits for the last ones.

    `keep_up`: waits for each of them, so that hardly anything is ever on this disk alone.
    """
    delivery = Delivery(journal, store, experiment)
    delivery.start()
    keeper = Keeper(journal, delivery, KEEP_UP_S if keep_up else None)
    limits = (HURRY_S, inf)
    try:
        yield keeper
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
            keeper.undelivered = journal.count_waiting()
            if not delivery.is_running:  # else it ends with the process, which is about to
                journal.close()
    if result.error:
        raise result.error


class Keeper:
    """Where the loop puts its cells."""

    def __init__(self, journal: Journal, delivery: Delivery, keep_up_s: float | None = None) -> None:
        self.undelivered = 0
        self._keep_up_s = keep_up_s
        self.delivered = delivery.result
        self._journal = journal
        self._delivery = delivery

    def keep(self, key: str, draft: RunDraft) -> None:
        if self.delivered.error:
            raise self.delivered.error
        self._journal.append(Entry(key, draft))
        self._delivery.wake()
        if self._keep_up_s is not None:
            self._wait_until_delivered(self._keep_up_s)

    def _wait_until_delivered(self, patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while not self._journal.is_delivered and not self.delivered.error:
            if time.monotonic() > until:
                raise TrackingUnreachable(
                    f"MLflow has not taken a cell for {patience_s:g} s, so that generating would only fill this disk; "
                    "make it reachable and start again"
                )
            time.sleep(_LOOK_EVERY_S)
        if self.delivered.error:
            raise self.delivered.error


def deliver_left_behind(journals: Iterable[Journal], store: RunStore) -> Delivered:
    """What processes that are gone could not deliver."""
    total = Delivered()
    for journal in journals:
        head = journal.head
        experiment = partial(store.ensure_experiment, head.experiment, {"tipbench.suite": head.suite})
        delivery = Delivery(journal, store, experiment, check_first=True)
        delivery.start()
        result = delivery.finish()
        if result.error:
            raise result.error
        if not journal.is_delivered:
            raise TrackingUnreachable(f"{journal.count_waiting()} cells still wait: MLflow at {store.address} is away")
        journal.close()
        total.cells += result.cells
    return total


@dataclass(frozen=True)
class Synced:
    """What became of one journal."""

    experiment: str
    address: str
    cells: int
    problem: str = ""  # why it still waits


def deliver_all(settings: Settings) -> Iterator[Synced]:
    """Deliver what every collection of this home left behind, each to its own store."""
    for journal in left_behind(journal_folder(settings.home)):
        head = journal.head
        try:
            opened = open_store(head.address, settings, create=True)
            try:
                delivered = deliver_left_behind([journal], opened.store)
            finally:
                opened.store.close()
        except TipbenchError as error:
            journal.close()
            yield Synced(head.experiment, head.address, 0, str(error))
        else:
            yield Synced(head.experiment, head.address, delivered.cells)
