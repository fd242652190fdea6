"""Seconds that `tipbench compare` takes for an experiment of 10,000 judged runs, start of the command to its exit.

    .venv/bin/python -m benchmarks.compare            # four minutes
    .venv/bin/python -m benchmarks.compare --before FOLDER     # beside the tipbench in another checkout

Twelve rows (model, prompt) over 834 scenarios, stored as a collection stores them and judged through a judge file.
They are compared in the database file, at first sight and again when nothing has changed; then over REST, from a real
MLflow server on the same file: at first sight, again, and with --refresh. All must print the same leaderboard.
"""

import argparse
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from tests.integration.mlflow_server import MlflowServer

from benchmarks.parts.checkouts import THIS, Checkout, add_before, checkouts
from benchmarks.parts.judged import EXPERIMENT, judged_experiment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import conclude, out, show
from benchmarks.parts.timed import Went, timed

PROMISED = {"file, first sight": 1.5, "file, nothing changed": 1.0, "server, nothing changed": 1.0}  # seconds
_SETTLE_S = 2.5  # a file that was written just now is not cached


def compare(home: Path, url: str, *words: str, checkout: Checkout = THIS) -> Went:
    return timed(home, "compare", "--experiment", EXPERIMENT, "--mlflow-url", url, *words, checkout=checkout)


def serve_artifacts(folder: Path) -> None:
    """The file knows the artifacts by their path; a server that serves them has its own word for that."""
    (folder / "artifacts").symlink_to(folder / "mlflow-artifacts")
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        database.execute(
            "UPDATE runs SET artifact_uri = replace(artifact_uri, ?, 'mlflow-artifacts:')",
            (str(folder / "mlflow-artifacts"),),
        )
        database.commit()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    add_before(parser)
    asked = parser.parse_args()
    with scratch_folders() as new_folder:
        home, folder = new_folder(), new_folder()
        os.environ["TIPBENCH_HOME"] = str(home)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:  # or its peak would be all the others'
            cells = apart.submit(judged_experiment, folder / "mlflow.db").result()
        os.sync()  # or the disk would still be busy with them while the first are compared
        out.print(f"{cells:,} judged runs are stored", style="dim")
        measured = _measure(folder, checkouts(asked.before), new_folder, asked.rounds)
    for by_way in measured.values():
        if len({went.printed for all_of_one in by_way.values() for went in all_of_one}) != 1:
            raise SystemExit("the ways did not print the same leaderboard; the figures mean nothing")
    _show(measured, cells)
    passed = [_kept(name, measured[THIS.name][name], most_s) for name, most_s in PROMISED.items()]
    return 0 if all(passed) else 1


def _measure(
    folder: Path, by: Sequence[Checkout], new_folder: Callable[[], Path], rounds: int
) -> dict[str, dict[str, list[Went]]]:
    """Return what each checkout took, by way."""
    measured: dict[str, dict[str, list[Went]]] = {one.name: {} for one in by}
    url = f"sqlite:///{folder / 'mlflow.db'}"

    def measure(one: Checkout, way: str, home: Path, url: str, *words: str) -> None:
        measured[one.name].setdefault(way, []).append(compare(home, url, *words, checkout=one))

    for _ in range(rounds):
        for one in by:
            compare(new_folder(), url, checkout=one)  # writes the answer to the experiment's description, once
            time.sleep(_SETTLE_S)
            home = new_folder()
            for way in ("file, first sight", "file, nothing changed"):
                measure(one, way, home, url)
    serve_artifacts(folder)
    with MlflowServer.start(folder) as server:
        for _ in range(rounds):
            for one in by:
                home = new_folder()
                measure(one, "server, first look", home, server.url)
                measure(one, "server, nothing changed", home, server.url)
                measure(one, "server, --refresh", home, server.url, "--refresh")
    return measured


def _show(measured: Mapping[str, Mapping[str, Sequence[Went]]], cells: int) -> None:
    rows = []
    for way in measured[THIS.name]:
        row = [way]
        for by_way in measured.values():
            seconds = [went.seconds for went in by_way[way]]
            row += [
                f"{median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})",
                f"{max(went.peak_mb for went in by_way[way]):.0f}",
            ]
        rows.append(row)
    columns = ("way", *(column for name in measured for column in (f"{name}, s", "peak MB")))
    show(f"tipbench compare, {cells:,} judged runs: median and range", columns, rows)


def _kept(name: str, all_of_one: Sequence[Went], most_s: float) -> bool:
    seconds = median(went.seconds for went in all_of_one)
    conclude(f"{name}: {seconds:.2f} s (wanted: under {most_s:g} s) — {'reached' if seconds < most_s else 'too slow'}")
    return seconds < most_s


if __name__ == "__main__":
    sys.exit(main())
