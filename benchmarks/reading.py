"""Seconds and memory of everything that reads or judges an experiment of 10,000 runs in a database file.

    .venv/bin/python -m benchmarks.reading                       # eight minutes
    .venv/bin/python -m benchmarks.reading --before FOLDER       # beside the tipbench in another checkout
    .venv/bin/python -m benchmarks.reading --curve               # 1,008 to 50,040 runs: how times grow; half an hour

Commands are measured from their start to their exit: `compare` at first sight and when nothing has changed, `judge
--export` and `--apply` of one candidate of each run, `experiments list` with 100 experiments of 96 runs. Pages are
asked for by one client on `tipbench serve`: at first sight, when the server has to read all runs, and again.
"""

import argparse
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from math import log
from multiprocessing import get_context
from pathlib import Path
from statistics import linear_regression, median

from tests.integration.filling import fill

from benchmarks.parts.checkouts import THIS, Checkout, add_before, checkouts
from benchmarks.parts.judged import EXPERIMENT, ROWS, SCENARIOS, judged_experiment, many_experiments, pending_experiment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import served
from benchmarks.parts.table import conclude, out, show
from benchmarks.parts.timed import peak_memory_mb, timed

TOKEN = "a-token-for-measuring-and-for-nothing-else"
FIRST, AGAIN = "first sight", "nothing changed"
PROMISED = {  # seconds with 10,008 runs
    f"compare, {FIRST}": 1.5,
    f"compare, {AGAIN}": 1.0,
    "judge --export": 2.0,
    "judge --apply": 2.0,
    "experiments list, 100": 2.0,
    f"page: leaderboard, {FIRST}": 1.5,
    f"page: leaderboard, {AGAIN}": 1.0,
    f"page: runs, {FIRST}": 2.0,
    f"page: experiments, {FIRST}": 2.0,
}
CURVE = (84, 417, 834, 4_170)  # scenarios of twelve rows each
_SETTLE_S = 2.5  # a file that was written just now is not cached
_PAGES = {
    "leaderboard": f"/experiments/leaderboard?experiment={EXPERIMENT}",
    "runs": f"/experiments/runs?experiment={EXPERIMENT}",
    "experiments": "/experiments",
}


@dataclass(frozen=True)
class Databases:
    """What is measured on; made once, apart, or their makers' memory would be part of the measurement."""

    judged: Path
    pending: Path
    many: Path | None


class Measurement:
    """Measures one checkout."""

    def __init__(self, checkout: Checkout, databases: Databases, new_folder: Callable[[], Path]) -> None:
        self._checkout = checkout
        self._on = databases
        self._new_folder = new_folder
        self._numbers = count()

    def everything(self) -> Iterator[tuple[str, float, float]]:
        """One round: what, seconds, peak in MB."""
        home = self._new_folder()
        for name in (FIRST, AGAIN):
            yield f"compare, {name}", *self._command(home, self._on.judged, "compare")
        yield from self._judging()
        if self._on.many:
            yield "experiments list, 100", *self._command(home, self._on.many, "experiments", "list")
        yield from self._pages()

    def _judging(self) -> Iterator[tuple[str, float, float]]:
        folder, home = self._new_folder(), self._new_folder()
        database, file = folder / "mlflow.db", folder / "judge.json"
        shutil.copy(self._on.pending, database)  # its texts stay where they are
        os.sync()  # or the disk would still be busy with it
        yield "judge --export", *self._command(home, database, "judge", "--export", str(file))
        fill(file)
        yield "judge --apply", *self._command(home, database, "judge", "--apply", str(file))

    def _command(self, home: Path, database: Path, *words: str) -> tuple[float, float]:
        experiment = () if words[0] == "experiments" else ("--experiment", EXPERIMENT)
        url = ("--mlflow-url", f"sqlite:///{database}")
        went = timed(home, *words, *experiment, *url, checkout=self._checkout)
        return went.seconds, went.peak_mb

    def _pages(self) -> Iterator[tuple[str, float, float]]:
        token = {"TIPBENCH_ADMIN_TOKEN": TOKEN}
        for name, path in _PAGES.items():
            database = self._on.many if name == "experiments" else self._on.judged
            if database is None:
                continue
            words = ("serve", "--mlflow-url", f"sqlite:///{database}")
            with served(self._new_folder(), words, token, self._checkout) as server:
                for when in (FIRST, AGAIN):
                    seconds = _seconds_for(f"{server.address}{path}")
                    yield f"page: {name}, {when}", seconds, peak_memory_mb(server.process.pid)


def _seconds_for(url: str) -> float:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    started = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as answer:
        answer.read()
    return time.perf_counter() - started


def make_databases(new_folder: Callable[[], Path], scenarios: int, with_many: bool) -> Databases:
    judged, pending, many = (new_folder() / "mlflow.db" for _ in range(3))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        cells = apart.submit(judged_experiment, judged, scenarios).result()
        apart.submit(pending_experiment, pending, scenarios=scenarios).result()
        if with_many:
            apart.submit(many_experiments, many, 100, 8).result()
    timed(new_folder(), "compare", "--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{judged}")  # describes it
    os.sync()
    time.sleep(_SETTLE_S)
    out.print(f"{cells:,} judged runs are stored", style="dim")
    return Databases(judged, pending, many if with_many else None)


Found = dict[str, list[tuple[float, float]]]  # what → seconds and peak MB of each round


def measure(measurements: Mapping[str, Measurement], rounds: int) -> dict[str, Found]:
    """All checkouts in turn, round by round."""
    found: dict[str, Found] = {name: {} for name in measurements}
    for _ in range(rounds):
        for name, measurement in measurements.items():
            for what, seconds, peak_mb in measurement.everything():
                found[name].setdefault(what, []).append((seconds, peak_mb))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    add_before(parser)
    parser.add_argument("--curve", action="store_true", help="experiments of several sizes, and how times grow")
    asked = parser.parse_args()
    with scratch_folders() as new_folder:
        os.environ["TIPBENCH_HOME"] = str(new_folder())
        if asked.curve:
            return _show_curve(new_folder, asked.rounds)
        databases = make_databases(new_folder, SCENARIOS, with_many=True)
        found = measure(
            {one.name: Measurement(one, databases, new_folder) for one in checkouts(asked.before)}, asked.rounds
        )
    return _report(found)


def _report(found: Mapping[str, Found]) -> int:
    rows, short = [], []
    for what, here in found[THIS.name].items():
        seconds = median(one for one, _ in here)
        most_s = PROMISED.get(what)
        row = [what, *(_figures(checkout[what]) for checkout in found.values()), f"{most_s:g}" if most_s else ""]
        rows.append(row)
        if most_s and seconds > most_s:
            short.append(f"{what}: {seconds:.2f} s, promised {most_s:g} s")
    columns = ["what", *(f"{name}: s (range), MB" for name in found), "promised s"]
    show(f"{ROWS * SCENARIOS:,} runs in a database file: median", columns, rows)
    conclude(f"Short of the promise: {'; '.join(short)}" if short else "All promises are reached.")
    return 1 if short else 0


def _figures(rounds: Sequence[tuple[float, float]]) -> str:
    seconds = [one for one, _ in rounds]
    spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
    return f"{median(seconds):.2f} ({spread}), {max(peak for _, peak in rounds):.0f}"


def _show_curve(new_folder: Callable[[], Path], rounds: int) -> int:
    """Show times by size, and the exponent of the power that they grow with."""
    by_size: dict[int, Found] = {}
    (checkout,) = checkouts(before=None)
    for scenarios in CURVE:
        databases = make_databases(new_folder, scenarios, with_many=False)
        measured = measure({checkout.name: Measurement(checkout, databases, new_folder)}, rounds)
        by_size[ROWS * scenarios] = measured[checkout.name]
    rows = []
    for what in next(iter(by_size.values())):
        seconds = [median(one for one, _ in found[what]) for found in by_size.values()]
        exponent = linear_regression([log(size) for size in by_size], [log(one) for one in seconds]).slope
        rows.append([what, *(_figures(found[what]) for found in by_size.values()), f"{exponent:.2f}"])
    show("how times grow: s (range), MB", ["what", *(f"{size:,} runs" for size in by_size), "exponent"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
