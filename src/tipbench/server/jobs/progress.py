"""A run's progress, in a small file that is complete whenever another process reads it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tipbench.core.files import atomic_write
from tipbench.core.untrusted import json_text

Phase = Literal["starting", "waiting", "collect", "judge", "compare", "simulate", "publish", "done"]
MAX_FAILURES = 20


@dataclass(frozen=True)
class FailedCell:
    cell: str
    reason: str


@dataclass(frozen=True)
class Progress:
    """One moment of a run. Times are in milliseconds since 1970."""

    phase: Phase = "starting"
    message: str = ""  # one sentence: what it waits for, or its result
    experiment: str = ""
    cells: int = 0  # that this run has to generate; for a simulation, lives
    stored: int = 0  # cells that were stored before the run
    done: int = 0  # of `cells`, including the failed ones
    failed: int = 0
    empty: int = 0
    current: str = ""  # the cell that was finished last
    collect_started_ms: int | None = None
    updated_ms: int = 0
    eta_s: float | None = None  # estimated seconds until all cells are collected
    failures: tuple[FailedCell, ...] = ()  # the first MAX_FAILURES
    waiting_items: int = 0  # items that now wait for a judge
    kept_as: str = ""  # a gate only: the id of its stored record

    def write(self, path: Path) -> None:
        """Write the file atomically: a reader sees either this state or the previous one."""
        atomic_write(path, json_text(asdict(self), indent=None))


def read_progress(path: Path) -> Progress | None:
    """Return the stored progress; None if nothing was reported yet or the file is not valid."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        failures = tuple(FailedCell(str(one["cell"]), str(one["reason"])) for one in data.pop("failures"))
        return Progress(**data, failures=failures)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
