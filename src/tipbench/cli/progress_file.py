"""The file behind `--progress FILE` of commands: progress for readers who don't see the terminal."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tipbench.bench.collect.plan import Plan
from tipbench.bench.context import Observer
from tipbench.bench.records import Answer, Cell, Outcome
from tipbench.cli.console import note
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.untrusted import printable
from tipbench.server.jobs.progress import MAX_FAILURES, FailedCell, Phase, Progress

if TYPE_CHECKING:
    from tipbench.bench.decide.rounds import Round

WRITE_INTERVAL_S = 0.25
_REASON_CHARS = 300
_ERROR_CHARS = 1000


class ProgressFile(Observer):
    """Observes a run and keeps the file up to date, in a background thread; without a path it writes nothing."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        self.experiment = ""
        self._path = path
        self._clock = clock
        self._phase: Phase = "starting"
        self._message = self._record_id = ""
        self._cells = self._stored = self._done = self._failed = self._empty = self._waiting_items = 0
        self._last: Cell | None = None
        self._started: float | None = None
        self._failures: list[FailedCell] = []
        self._write_lock = threading.Lock()
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress file", daemon=True)

    def __enter__(self) -> "ProgressFile":
        if self._path:
            try:
                self._snapshot().write(self._path)
            except OSError as error:
                raise InvalidInput(
                    f"progress can't be written to {self._path}: {error.strerror or error}; name another file"
                ) from None
            self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _where: TracebackType | None
    ) -> None:
        if error is not None:
            self._message = _error_message(error)
        self._stopped.set()
        self._changed.set()
        if self._path:
            self._thread.join()
            self._write()

    def begin(self, phase: Phase, message: str = "") -> None:
        self._phase, self._message = phase, message
        self._write()

    def waiting(self, text: str) -> None:
        self.begin("waiting", text)

    def finish(self, message: str, waiting_items: int = 0, record_id: str = "") -> None:
        self._waiting_items, self._record_id = waiting_items, record_id
        self.begin("done", message)

    def judged(self, found: "Round") -> None:
        self.begin("judge", found.verdict.in_short)

    def scored(self, done: int, of: int, cost_usd: float) -> None:
        cost = f", {cost_usd:.2f} USD so far" if cost_usd else ""
        self._phase, self._message = "judge", f"{done} of {of} items scored{cost}"
        if self._started is None:  # it only judges; else these count cells
            self._done, self._cells = done, of
        self._changed.set()

    def published(self, done: int, of: int) -> None:
        self._phase, self._done, self._cells = "publish", done, of
        self._changed.set()

    def planned(self, plan: Plan) -> None:
        self._cells, self._stored = len(plan.to_do), plan.stored
        self._done = self._failed = self._empty = 0  # a decision collects once a round
        self._started = self._clock()
        self.begin("collect")

    def done(self, outcome: Outcome) -> None:
        self._last = outcome.cell
        self._done += 1
        if isinstance(outcome, Answer):
            self._empty += not outcome.candidates
        else:
            self._failed += 1
            if len(self._failures) < MAX_FAILURES:
                self._failures.append(
                    FailedCell(printable(outcome.cell.label), printable(outcome.reason, _REASON_CHARS))
                )
        if self._done == self._cells:
            self._message = "all cells are generated; the last ones are being stored in MLflow"
        self._changed.set()

    def simulated(self, done: int, of: int) -> None:
        """Report that `done` of `of` lives are simulated."""
        if self._started is None:
            self._started = self._clock()
        self._phase, self._done, self._cells = "simulate", done, of
        self._changed.set()

    def _run(self) -> None:
        """Write the file soon after each change, but at most every WRITE_INTERVAL_S, however quick the cells are."""
        while not self._stopped.is_set():
            self._changed.wait()
            self._changed.clear()
            self._write()
            self._stopped.wait(WRITE_INTERVAL_S)

    def _write(self) -> None:
        if self._path is None:
            return
        with self._write_lock:
            try:
                self._snapshot().write(self._path)
            except OSError as error:  # not worth failing hours of work
                note(
                    f"Progress can't be written to {self._path} any more; the run continues: {error.strerror or error}"
                )
                self._path = None

    def _snapshot(self) -> Progress:
        now, done, left = self._clock(), self._done, self._cells - self._done
        has_eta = self._phase in ("collect", "simulate") and self._started is not None and done > 0
        return Progress(
            phase=self._phase,
            message=self._message,
            experiment=self.experiment,
            cells=self._cells,
            stored=self._stored,
            done=done,
            failed=self._failed,
            empty=self._empty,
            current=printable(self._last.label) if self._last else "",
            collect_started_ms=None if self._started is None else round(self._started * 1000),
            updated_ms=round(now * 1000),
            eta_s=round((now - self._started) / done * left, 1) if has_eta and self._started is not None else None,
            failures=tuple(self._failures),
            waiting_items=self._waiting_items,
            kept_as=self._record_id,
        )


def _error_message(error: BaseException) -> str:
    """Return the message about an error for the user, on one line."""
    if isinstance(error, TipbenchError):
        return printable(str(error), _ERROR_CHARS)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; what was done is stored"
    if isinstance(error, OSError):
        return printable(str(error), _ERROR_CHARS)
    return printable(f"it ended with an unexpected error ({type(error).__name__}: {error})", _ERROR_CHARS)
