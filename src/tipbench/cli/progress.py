"""The progress of a collection: a bar on a terminal, one line per cell elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from tipbench.bench.collect.plan import Plan
from tipbench.bench.context import Observer
from tipbench.bench.records import Answer, Outcome
from tipbench.cli.console import Notes, err
from tipbench.core.text import duration
from tipbench.core.untrusted import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tipbench.bench.decide.rounds import Round

_COLUMNS_BESIDE_LABEL = 76


class CollectingObserver(Notes):
    """Displays the progress of a collection, and forwards it to other observers, such as a progress file."""

    def __init__(self, *others: Observer) -> None:
        self._others = others
        self._display: ProgressBar | ProgressLines | None = None

    @contextmanager
    def displayed(self) -> Iterator[None]:
        """Display progress while cells are generated."""
        with _open_display(err) as self._display:
            yield
        self._display = None

    def planned(self, plan: Plan) -> None:
        if self._display:
            self._display.planned(plan)
        for other in self._others:
            other.planned(plan)

    def done(self, outcome: Outcome) -> None:
        if self._display:
            self._display.done(outcome)
        for other in self._others:
            other.done(outcome)

    def judged(self, found: "Round") -> None:
        self.note(found.verdict.in_short)
        for other in self._others:
            other.judged(found)

    def scored(self, done: int, of: int, cost_usd: float) -> None:
        for other in self._others:
            other.scored(done, of, cost_usd)

    def published(self, done: int, of: int) -> None:
        for other in self._others:
            other.published(done, of)

    def waiting(self, text: str) -> None:
        self.note(text)
        for other in self._others:
            other.waiting(text)


@contextmanager
def _open_display(console: Console) -> "Iterator[ProgressBar | ProgressLines]":
    if not console.is_terminal:
        yield ProgressLines(console)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("ETA", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield ProgressBar(progress)


class ProgressBar:
    """Shows one bar over all cells; failures are printed above it as they happen."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._failed = 0
        self._empty = 0

    def planned(self, plan: Plan) -> None:
        if plan.stored:
            self._progress.console.print(plan.what_is_stored, style="dim")
        if self._task is not None:  # of an earlier round
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task("collecting", total=len(plan.to_do), counts="")

    def done(self, outcome: Outcome) -> None:
        if isinstance(outcome, Answer):
            self._empty += not outcome.candidates
        else:
            self._failed += 1
            self._progress.console.print(
                f"failed: {printable(outcome.cell.label)}: {printable(outcome.reason, 300)}", style="red"
            )
        counts = f"{self._failed} failed · {self._empty} empty"
        assert self._task is not None
        self._progress.update(self._task, advance=1, counts=counts, description=self._label(outcome))

    def _label(self, outcome: Outcome) -> str:
        """Return as much of the cell's name as fits beside bar, counts and times."""
        room = self._progress.console.width - _COLUMNS_BESIDE_LABEL
        return printable(outcome.cell.label, room) if room >= 12 else ""


class ProgressLines:
    """Prints one line per cell, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._total = 0
        self._count = 0
        self._started = 0.0

    def planned(self, plan: Plan) -> None:
        self._total, self._count = len(plan.to_do), 0
        self._started = time.monotonic()
        if plan.stored:
            self._print(plan.what_is_stored)

    def done(self, outcome: Outcome) -> None:
        self._count += 1
        left = (time.monotonic() - self._started) / self._count * (self._total - self._count)
        self._print(
            f"[{self._count}/{self._total}] {printable(outcome.cell.label)}: {describe(outcome)}"
            + (f", about {duration(left)} left" if left >= 1 else "")
        )

    def _print(self, text: str) -> None:
        self._console.file.write(f"{text}\n")  # many thousands of lines, for which rich is too slow


def describe(outcome: Outcome) -> str:
    if not isinstance(outcome, Answer):
        return f"FAILED: {printable(outcome.reason, 300)}"
    found = f"{len(outcome.candidates)} of {outcome.cell.n_tips} candidates"
    if outcome.format_ok:
        return found
    return f"{found} (invalid format, {f'read as {outcome.read_as}' if outcome.candidates else 'no usable text'})"


@contextmanager
def bytes_bar(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar of bytes on a terminal; nothing elsewhere, where the final message is enough.

    Yields what to call with the number done, and of how many if that is known.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(label, markup=False), BarColumn(bar_width=16), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)
