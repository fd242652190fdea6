"""The gauges of the admin server, as Prometheus gets them."""

from collections.abc import Iterator
from typing import get_args

from tipbench.server.jobs.interface import JobState
from tipbench.server.views.gauges import Gauges
from tipbench.web.metrics import Family, Gauge, Labels, label

_JOBS = Family("tipbench_jobs", "The newest jobs, by state; those that wait are queued.", ("state",), "gauge")
_CELLS = Family("tipbench_cells", "Cells of the newest experiments, by state.", ("experiment", "state"), "gauge")
_ON_HOLD = Family(
    "tipbench_batches_on_hold",
    "Batches whose scores don't count, as their judge drifted.",
    ("experiment",),
    "gauge",
)
_UNDELIVERED = Family("tipbench_undelivered_cells", "Cells on this machine that MLflow does not have yet.", (), "gauge")
_UNDELIVERED_AGE = Family(
    "tipbench_undelivered_age_seconds",
    "Seconds since the oldest journal was written that waits for delivery and that nobody is writing; 0 if none does.",
    (),
    "gauge",
)


def gauges_of(gauges: Gauges) -> Iterator[Gauge]:
    """Yield the gauges that can be told now."""
    found = gauges.read()
    if found.jobs is not None:
        yield _JOBS, {(state,): found.jobs[state] for state in get_args(JobState)}
    if found.experiments is not None:
        cells: dict[Labels, float] = {}
        on_hold: dict[Labels, float] = {}
        for one in found.experiments:
            name = label(one.experiment)
            on_hold[name,] = one.on_hold
            for state in ("judged", "pending", "failed"):
                cells[name, state] = getattr(one.cells, state)
        yield _CELLS, cells
        yield _ON_HOLD, on_hold
    if found.backlog is not None:
        yield _UNDELIVERED, {(): found.backlog.cells}
        yield _UNDELIVERED_AGE, {(): found.backlog.age_s}
