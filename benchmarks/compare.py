"""Seconds that `tipbench compare` takes for an experiment of 10,000 judged runs, start of the command to its exit.

    .venv/bin/python -m benchmarks.compare            # four minutes
    .venv/bin/python -m benchmarks.compare --rounds 5

Twelve rows (model, prompt) over 834 scenarios, stored as a collection stores them and judged through a judge file.
They are compared in the database file, at first sight and again when nothing has changed; then over REST, from a real
MLflow server on the same file: at first sight, again, and with --refresh. All must print the same leaderboard.
"""

import argparse
import os
import sqlite3
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from tests.integration.mlflow_server import MlflowServer

from benchmarks.parts.judged import EXPERIMENT, judged_experiment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import conclude, out, show
from benchmarks.parts.timed import Went, timed

PROMISED = {"file, first sight": 1.5, "file, nothing changed": 1.0, "server, nothing changed": 1.0}  # seconds
_SETTLE_S = 2.5  # a file that was written just now is not cached


def compare(home: Path, url: str, *words: str) -> Went:
    return timed(home, "compare", "--experiment", EXPERIMENT, "--mlflow-url", url, *words)


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
    rounds = parser.parse_args().rounds
    measured: dict[str, list[Went]] = {}
    with scratch_folders() as new_folder:
        home, folder = new_folder(), new_folder()
        os.environ["TIPBENCH_HOME"] = str(home)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:  # or its peak would be all the others'
            cells = apart.submit(judged_experiment, folder / "mlflow.db").result()
        os.sync()  # or the disk would still be busy with them while the first are compared
        out.print(f"{cells:,} judged runs are stored", style="dim")
        url = f"sqlite:///{folder / 'mlflow.db'}"
        compare(home, url)  # writes the answer to the experiment's description, once
        time.sleep(_SETTLE_S)
        for _ in range(rounds):
            readers_home = new_folder()
            for name in ("file, first sight", "file, nothing changed"):
                measured.setdefault(name, []).append(compare(readers_home, url))
        serve_artifacts(folder)
        with MlflowServer.start(folder) as server:
            for _ in range(rounds):
                readers_home = new_folder()
                measured.setdefault("server, first look", []).append(compare(readers_home, server.url))
                for name, words in (("server, nothing changed", ()), ("server, --refresh", ("--refresh",))):
                    measured.setdefault(name, []).append(compare(readers_home, server.url, *words))
    if len({went.printed for all_of_one in measured.values() for went in all_of_one}) != 1:
        raise SystemExit("the ways did not print the same leaderboard; the figures mean nothing")
    _show(measured, cells)
    passed = [_kept(name, measured[name], most_s) for name, most_s in PROMISED.items()]
    return 0 if all(passed) else 1


def _show(measured: dict[str, list[Went]], cells: int) -> None:
    rows = []
    for name, all_of_one in measured.items():
        seconds = [went.seconds for went in all_of_one]
        spread = f"{median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})"
        rows.append((name, spread, f"{max(went.peak_mb for went in all_of_one):.0f}"))
    show(f"tipbench compare, {cells:,} judged runs: median and range", ("way", "s", "peak MB"), rows)


def _kept(name: str, all_of_one: list[Went], most_s: float) -> bool:
    seconds = median(went.seconds for went in all_of_one)
    conclude(f"{name}: {seconds:.2f} s (wanted: under {most_s:g} s) — {'reached' if seconds < most_s else 'too slow'}")
    return seconds < most_s


if __name__ == "__main__":
    sys.exit(main())
