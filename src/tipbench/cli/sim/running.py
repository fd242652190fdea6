"""Runs a simulation and shows its progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeftColumn

from tipbench.cli.console import err, note
from tipbench.cli.progress_file import ProgressFile
from tipbench.cli.sim.flags import Flags
from tipbench.core.errors import InvalidInput
from tipbench.core.files import atomic_write
from tipbench.core.text import duration
from tipbench.core.untrusted import json_text
from tipbench.recommender.simulation.over_http import is_served
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest, simulate_in_subprocess

INTERRUPTED = 130
_LINES = 10  # of progress in a log, over a whole simulation
ProgressCallback = Callable[[int, int], None]  # lives done, lives in total


def run_with_progress(request: SimulationRequest, flags: Flags, progress_file: ProgressFile) -> dict[str, Any]:
    """Run the simulation in a subprocess and return its results; show progress here and in the progress file."""
    plan = request.plan()
    if flags.out:
        _check_out(flags.out)
    in_process = [arm.name for arm in plan.arms if request.http and not is_served(arm)]
    if in_process:
        note(f"Simulated in process, because they can't be served over HTTP: {', '.join(in_process)}.")
    with _progress_display(err) as show:

        def progress(done: int, of: int) -> None:
            show(done, of)
            progress_file.simulated(done, of)

        progress_file.simulated(0, plan.lives)
        return simulate_in_subprocess(request, flags.processes(plan.lives), flags.timeout, progress)


def write_out(found: dict[str, Any], flags: Flags) -> None:
    if not flags.out:
        return
    try:
        atomic_write(flags.out, f"{json_text(found)}\n", durable=True)
    except OSError as error:
        raise InvalidInput(f"--out {flags.out} can't be written: {error.strerror or error}") from error


def interrupted(progress_file: ProgressFile) -> int:
    progress_file.begin("simulate", "interrupted; nothing was stored")
    note("Interrupted. Nothing was stored: a simulation can't be continued.")
    return INTERRUPTED


def _check_out(path: Path) -> None:
    """Raise InvalidInput for a path that can't be written, before the simulation takes minutes."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidInput(f"--out {path} can't be written; name a file in a folder that exists")


@contextmanager
def _progress_display(console: Console) -> Iterator[ProgressCallback]:
    """Show a bar on a terminal, and a few lines elsewhere."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("lives", markup=False),
        TimeElapsedColumn(),
        TextColumn("ETA", markup=False),
        TimeLeftColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("simulating", total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = monotonic()
        self._reported = 0

    def __call__(self, done: int, of: int) -> None:
        part = done * _LINES // of
        if part == self._reported:
            return
        self._reported = part
        left = (monotonic() - self._started) / done * (of - done)
        soon = f", about {duration(left)} left" if left >= 1 else ""
        print(f"[{done}/{of}] lives simulated{soon}", file=self._console.file)
