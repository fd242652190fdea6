"""What can be measured of the bench at any moment: jobs, cells, batches on hold, and cells that wait for delivery.

Whoever asks gets what was read within the last seconds. It is read in the background, one thread for each part, and
whoever asks waits for that only briefly: a part that takes longer is as it was before, and one that can't be read is
missing. Pauses in proportion to what reading costs keep that from taking the machine, however large the store is.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from tipbench.bench.collect.journal import undelivered
from tipbench.bench.judge.status import count_on_hold
from tipbench.bench.suites.load import built_in_prefixes
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CellCounts, count_cells
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.write_markers import marker_state
from tipbench.core.errors import DatabaseBusy, StoredDataDamaged, TrackingError
from tipbench.core.paths import journal_folder
from tipbench.core.untrusted import shown
from tipbench.recommender.log.segmented_log import RateLimitedLog
from tipbench.server.jobs.interface import JobState, Runner
from tipbench.server.views.store_provider import StoreProvider

MAX_EXPERIMENTS = 50
MAX_JOBS = 200
WAIT_S = 2.0
_FRESH_S = 5.0
_PAUSE = 20.0  # times the cost of reading
_MAX_PAUSE_S = 60.0
_UNMARKED_FRESH_S = 300.0  # MLflow's own pages change runs without a marker
_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")


class ExperimentGauges(NamedTuple):
    experiment: str
    cells: CellCounts
    on_hold: int  # batches


class Backlog(NamedTuple):
    cells: int
    age_s: float  # since the oldest journal was written that nobody uses; 0 if there is none


class GaugeValues(NamedTuple):
    """A part is None if it can't be read, or has never been."""

    jobs: Counter[JobState] | None
    experiments: list[ExperimentGauges] | None
    backlog: Backlog | None


class BackgroundReading(Generic[_Value]):
    """A value that is read again in the background when somebody asks, with pauses in proportion to its cost."""

    def __init__(
        self,
        read: Callable[[], _Value],
        on_error: Callable[[Exception], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._on_error = on_error
        self._clock = clock
        self._condition = threading.Condition()
        self._value: _Value | None = None
        self._due = float("-inf")
        self._reading = False

    def latest(self, deadline: float) -> _Value | None:
        """Return the value; wait until the deadline for one that is being read. None if the last reading failed."""
        with self._condition:
            if not self._reading and self._clock() >= self._due:
                self._reading = True
                threading.Thread(target=self._read_once, name="gauges", daemon=True).start()
            while self._reading and (left := deadline - self._clock()) > 0:
                self._condition.wait(left)
            return self._value

    def close(self) -> None:
        """Read no more."""
        with self._condition:
            self._due = float("inf")

    def _read_once(self) -> None:
        start, value = self._clock(), None
        try:
            value = self._read()
        except Exception as error:  # noqa: BLE001 - it is logged, and this part is missing
            if self._due < float("inf"):
                self._on_error(error)
        with self._condition:
            cost = self._clock() - start
            self._value, self._reading = value, False
            self._due = max(self._due, start + cost + _pause_s(cost))
            self._condition.notify_all()


def _pause_s(cost_s: float) -> float:
    return min(_MAX_PAUSE_S, max(_FRESH_S, _PAUSE * cost_s))


class _Counted(NamedTuple):
    """What was read of an experiment, and when it must be read again."""

    gauges: ExperimentGauges | None  # None: it can't be counted
    name: str
    write_state: str | None
    due: float  # if anything was written since
    due_anyway: float


class Gauges:
    def __init__(self, stores: StoreProvider, runner: Runner, clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._runner = runner
        self._clock = clock
        self._prefixes = built_in_prefixes()
        self._counted: dict[str, _Counted] = {}
        self._store: RunStore | None = None
        self._damaged_log = RateLimitedLog(_log)

        def failed(what: str) -> Callable[[Exception], None]:
            log = RateLimitedLog(_log)

            def on_error(error: Exception) -> None:
                if isinstance(error, TrackingError | DatabaseBusy):
                    stores.count_error()
                log.warning(f"/metrics lacks {what}, which can't be read", error)

            return on_error

        self._jobs = BackgroundReading(self._read_jobs, failed("jobs"), clock)
        self._experiments = BackgroundReading(self._read_experiments, failed("cells"), clock)
        self._backlog = BackgroundReading(self._read_backlog, failed("what waits for delivery"), clock)

    def read(self, wait_s: float = WAIT_S) -> GaugeValues:
        """Return all gauges, as they were read within the last seconds if that can be done in this time."""
        now = self._clock()
        for part in (self._jobs, self._experiments, self._backlog):
            part.latest(deadline=now)  # so that all are read at once
        until = now + wait_s
        return GaugeValues(self._jobs.latest(until), self._experiments.latest(until), self._backlog.latest(until))

    def close(self) -> None:
        for part in (self._jobs, self._experiments, self._backlog):
            part.close()

    def _read_jobs(self) -> Counter[JobState]:
        return Counter(job.state for job in self._runner.jobs(limit=MAX_JOBS))

    def _read_backlog(self) -> Backlog:
        found = [one for one in undelivered(journal_folder(self._stores.settings.home)) if one.cells]
        oldest_s = min((one.written_s for one in found if not one.in_use), default=None)
        age_s = 0.0 if oldest_s is None else max(0.0, self._stores.clock() - oldest_s)
        return Backlog(sum(one.cells for one in found), age_s)

    def _read_experiments(self) -> list[ExperimentGauges]:
        store = self._stores.store_if_any()
        if store is None:
            return []
        if store is not self._store:
            self._store, self._counted = store, {}
        with self._stores.timed("list"):
            listed = store.experiments("")
        ours = (one for one in reversed(listed) if one.name.startswith(self._prefixes) or "tipbench.suite" in one.tags)
        newest = list(islice(ours, MAX_EXPERIMENTS))
        self._counted = {one.id: self._count(store, one) for one in newest}
        return [found.gauges for found in self._counted.values() if found.gauges]

    def _count(self, store: RunStore, experiment: Experiment) -> _Counted:
        """Return the counts of an experiment, read again if it was written to."""
        before, write_state, start = self._counted.get(experiment.id), marker_state(experiment), self._clock()
        if before and before.name == experiment.name and start < before.due_anyway:
            unchanged = write_state is not None and write_state == before.write_state
            if unchanged or start < before.due:
                return before
        gauges = None
        try:
            with self._stores.timed("count"):
                cells, on_hold = count_cells(store, experiment), count_on_hold(store, experiment)
            gauges = ExperimentGauges(experiment.name, cells, on_hold)
        except StoredDataDamaged as error:  # the other experiments can be counted
            self._damaged_log.warning(f"/metrics lacks the experiment {shown(experiment.name)}", error)
        now = self._clock()
        return _Counted(gauges, experiment.name, write_state, now + _pause_s(now - start), now + _UNMARKED_FRESH_S)
