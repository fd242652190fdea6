"""`tipbench run` and `sim … --progress FILE`: a file that says how far it is, for whoever is not at the terminal."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tipbench.bench.collect.plan import Plan
from tipbench.bench.context import Observer
from tipbench.bench.records import Answer, Cell, Outcome
from tipbench.cli.console import note
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.untrusted import printable
from tipbench.server.jobs.progress import FAILURES_KEPT, FailedCell, Phase, Progress

EVERY_S = 0.25
_REASON_CHARS = 300
_ERROR_CHARS = 1000


class ProgressFile(Observer):
    """Watches a run and keeps the file up to date, in a thread of its own; without a path it keeps nothing."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        self.experiment = ""
        self._path = path
        self._clock = clock
        self._phase: Phase = "starting"
        self._message = self._kept_as = ""
        self._cells = self._stored = self._done = self._failed = self._empty = self._waiting_items = 0
        self._last: Cell | None = None
        self._started: float | None = None
        self._failures: list[FailedCell] = []
        self._one_at_a_time = threading.Lock()
        self._news = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress file", daemon=True)

    def __enter__(self) -> "ProgressFile":
        if self._path:
            try:
                self._moment().write(self._path)
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
            self._message = _sentence(error)
        self._over.set()
        self._news.set()
        if self._path:
            self._thread.join()
            self._write()

    def begin(self, phase: Phase, message: str = "") -> None:
        self._phase, self._message = phase, message
        self._write()

    def waiting(self, text: str) -> None:
        self.begin("waiting", text)

    def finish(self, message: str, waiting_items: int = 0, kept_as: str = "") -> None:
        self._waiting_items, self._kept_as = waiting_items, kept_as
        self.begin("done", message)

    def planned(self, plan: Plan) -> None:
        self._cells, self._stored = len(plan.to_do), plan.stored
        self._started = self._clock()
        self.begin("collect")

    def done(self, outcome: Outcome) -> None:
        self._last = outcome.cell
        self._done += 1
        if isinstance(outcome, Answer):
            self._empty += not outcome.candidates
        else:
            self._failed += 1
            if len(self._failures) < FAILURES_KEPT:
                self._failures.append(
                    FailedCell(printable(outcome.cell.label), printable(outcome.reason, _REASON_CHARS))
                )
        if self._done == self._cells:
            self._message = "all cells are generated; the last ones are on their way to MLflow"
        self._news.set()

    def simulated(self, done: int, of: int) -> None:
        """So many lives of a simulation."""
        if self._started is None:
            self._started = self._clock()
        self._phase, self._done, self._cells = "simulate", done, of
        self._news.set()

    def _run(self) -> None:
        """At most so often, however quick the cells are; and soon after the last of them, however slow the next is."""
        while not self._over.is_set():
            self._news.wait()
            self._news.clear()
            self._write()
            self._over.wait(EVERY_S)

    def _write(self) -> None:
        if self._path is None:
            return
        with self._one_at_a_time:
            try:
                self._moment().write(self._path)
            except OSError as error:  # hours of work are worth more than this file
                note(f"Progress can't be written to {self._path} any more, the run goes on: {error.strerror or error}")
                self._path = None

    def _moment(self) -> Progress:
        now, done, left = self._clock(), self._done, self._cells - self._done
        is_going = self._phase in ("collect", "simulate") and self._started is not None and done > 0
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
            eta_s=round((now - self._started) / done * left, 1) if is_going and self._started is not None else None,
            failures=tuple(self._failures),
            waiting_items=self._waiting_items,
            kept_as=self._kept_as,
        )


def _sentence(error: BaseException) -> str:
    """What the user reads about it, on one line."""
    if isinstance(error, TipbenchError):
        return printable(str(error), _ERROR_CHARS)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; what was done is stored"
    if isinstance(error, OSError):
        return printable(str(error), _ERROR_CHARS)
    return printable(f"it ended with an error that nobody foresaw ({type(error).__name__}: {error})", _ERROR_CHARS)
