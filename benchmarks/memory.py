"""Memory and time that `tipbench collect` takes for 100, 1,000, 10,000 and 100,000 cells, and for the same once more.

    .venv/bin/python -m benchmarks.memory                  # ten minutes, and 5 GB of disk until it ends
    .venv/bin/python -m benchmarks.memory --most 10000

The grids differ in nothing but `--repeats`; answers come from the scripted engine at once, and go to a database and
files of their own. The second run of each command finds every cell stored and has nothing to do.

Growth of time is told as an exponent: from one grid to the next, processor time grows as the number of cells to that
power. It is 1 where twice the cells take twice the time; what a command takes to start makes it smaller.
"""

import argparse
import sys
from itertools import pairwise
from math import log
from pathlib import Path
from typing import NamedTuple

from benchmarks.parts.collecting import Collection, collect
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.stored import stored_cells
from benchmarks.parts.table import conclude, out, show

MODELS = ",".join(f"scripted/{letter}" for letter in "abcdefghij")
GRID = ("--models", MODELS, "--prompts", "v1,v3-few-shot", "--n-scenarios", "5")
CELLS_A_REPEAT = 10 * 2 * 5
REPEATS = (1, 10, 100, 1000)
MOST_GROWTH_MB = 50
MOST_EXPONENT = 1.1  # from 1,000 cells to the largest grid


class Measured(NamedTuple):
    cells: int
    first: Collection
    again: Collection


def measure(repeats: int, home: Path, folder: Path) -> Measured:
    cells = CELLS_A_REPEAT * repeats
    database = folder / "mlflow.db"
    words = (*GRID, "--repeats", str(repeats))
    first = collect(home, database, "tip-bench-memory", *words)
    again = collect(home, database, "tip-bench-memory", *words)
    found = stored_cells(database)
    if found != cells:
        raise SystemExit(f"{found} cells are stored, not {cells}; the figures mean nothing")
    return Measured(cells, first, again)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000, help="leave out grids of more cells")
    wanted = [repeats for repeats in REPEATS if CELLS_A_REPEAT * repeats <= parser.parse_args().most]
    if len(wanted) < 2:
        raise SystemExit("there is no growth to tell with fewer than two grids; give a larger --most")
    measured: list[Measured] = []
    with scratch_folders() as new_folder:
        home = new_folder()
        measure(1, home, new_folder())  # MLflow makes the empty database that later ones are copies of
        for repeats in wanted:
            measured.append(measure(repeats, home, new_folder()))
            out.print(f"{measured[-1].cells:,} cells: {measured[-1].first.seconds:.1f} s", style="dim")
        _show(measured)
        passed = _verdict(measured[0], measured[-1])
        passed &= _verdict_of_time(measured)
        out.print("deleting the files, which may take minutes …", style="dim")
    return 0 if passed else 1


def _show(measured: list[Measured]) -> None:
    smallest = measured[0]
    rows = [
        (
            f"{cells:,}",
            f"{first.seconds:.1f}",
            f"{first.processor_s:.1f}",
            f"{cells / first.seconds:,.0f}",
            _mb(first.peak_bytes),
            _mb(first.peak_bytes - smallest.first.peak_bytes),
            f"{again.seconds:.1f}",
            _mb(again.peak_bytes),
            _mb(again.peak_bytes - smallest.again.peak_bytes),
        )
        for cells, first, again in measured
    ]
    columns = (
        "cells",
        "s",
        "processor s",
        "cells/s",
        "peak MB",
        "growth MB",
        "again, s",
        "again, peak MB",
        "again, growth MB",
    )
    show("tipbench collect, and the same command again with nothing left to do", columns, rows)


def _exponent(one: Measured, other: Measured) -> float:
    return log(other.first.processor_s / one.first.processor_s) / log(other.cells / one.cells)


def _verdict_of_time(measured: list[Measured]) -> bool:
    """Tell how processor time grows, from each grid to the next and from 1,000 cells to the largest."""
    for one, other in pairwise(measured):
        conclude(f"processor time from {one.cells:,} to {other.cells:,} cells: cells^{_exponent(one, other):.2f}")
    start = next((one for one in measured if one.cells >= 1_000), None)
    if start is None or start is measured[-1]:
        return True
    exponent = _exponent(start, measured[-1])
    passed = exponent <= MOST_EXPONENT
    conclude(
        f"from {start.cells:,} to {measured[-1].cells:,} cells: cells^{exponent:.2f} "
        f"(wanted: at most {MOST_EXPONENT}) — {'reached' if passed else 'too much'}"
    )
    return passed


def _verdict(smallest: Measured, largest: Measured) -> bool:
    growth = (largest.first.peak_bytes - smallest.first.peak_bytes) / 1e6
    passed = growth < MOST_GROWTH_MB
    conclude(
        f"growth from {smallest.cells:,} to {largest.cells:,} cells: {growth:.1f} MB "
        f"(wanted: under {MOST_GROWTH_MB} MB) — {'reached' if passed else 'too much'}"
    )
    return passed


def _mb(size: float) -> str:
    return f"{size / 1e6:.1f}"


if __name__ == "__main__":
    sys.exit(main())
