"""`tipbench collect` killed (SIGKILL) at 100 random moments and started again each time: is every cell there once?

    .venv/bin/python -m benchmarks.kills                       # some minutes
    .venv/bin/python -m benchmarks.kills --kills 20 --seed 3   # other moments

A grid is killed until a start outlives its moment and finishes it; then the next one begins, in a new database. At the
end the last grid is finished too, and every database is looked through.
"""

import argparse
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

from benchmarks.parts.collecting import collect, command, environment
from benchmarks.parts.found_cells import Found, look_through, total
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show

REPEATS = 20
CELLS = 3 * 8 * REPEATS
LATENCY_S = 0.01
MOMENTS_S = (0.0, 4.0)  # after the start; the first cell comes after about half a second
EXPERIMENT = "tip-bench-kills"
PHASES = ("before the first cell", "between two cells", "after the last cell")
_CELL_DONE = re.compile(r"^\[(\d+)/(\d+)\]", re.MULTILINE)
_SAVED = re.compile(r"^(\d+) cells that an earlier run generated", re.MULTILINE)


class Attempt(NamedTuple):
    killed: bool
    said: str

    @property
    def phase(self) -> str:
        done = _CELL_DONE.findall(self.said)
        if not done:
            return PHASES[0]
        number, total = done[-1]
        return PHASES[2] if number == total else PHASES[1]

    @property
    def saved(self) -> int:
        """Cells that this start found in the journal of one that was killed."""
        return sum(int(cells) for cells in _SAVED.findall(self.said))


class Grid(NamedTuple):
    """One experiment in a database of its own; the home, and so the journal's folder, is shared."""

    home: Path
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "mlflow.db"

    @property
    def words(self) -> tuple[str, ...]:
        script = self.home / "slow.yaml"
        script.write_text(yaml.safe_dump({"parameters": 1_000_000_000, "latency_s": LATENCY_S}))
        return ("--models", f"scripted/{script}", "--repeats", str(REPEATS))

    def attempt(self, seconds: float) -> Attempt:
        """Started, and killed after so many seconds unless it has ended."""
        with subprocess.Popen(
            command(self.database, EXPERIMENT, *self.words),
            env=environment(self.home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                _, said = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate()
        if process.returncode not in (0, -9):
            raise SystemExit(f"tipbench collect ended with {process.returncode}:\n{said[-2000:]}")
        return Attempt(process.returncode == -9, said)

    def finish(self) -> None:
        collect(self.home, self.database, EXPERIMENT, *self.words)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    arguments = parser.parse_args()
    drawn = random.Random(arguments.seed)
    phases: Counter[str] = Counter()
    saved = 0
    with scratch_folders() as new_folder:
        home = new_folder()
        grids = [Grid(home, new_folder())]
        while phases.total() < arguments.kills:
            attempt = grids[-1].attempt(drawn.uniform(*MOMENTS_S))
            saved += attempt.saved
            if attempt.killed:
                phases[attempt.phase] += 1
                out.print(f"kill {phases.total()}: grid {len(grids)}, {attempt.phase}", style="dim")
            else:
                grids.append(Grid(home, new_folder()))
        for grid in grids:
            grid.finish()
        found = total(look_through(grid.database, EXPERIMENT) for grid in grids)
        in_journal = len(list((home / "journal").iterdir()))
    _show(phases, saved)
    return 0 if _verdict(phases.total(), len(grids), found, in_journal) else 1


def _show(phases: Counter[str], saved: int) -> None:
    rows = [(phase, str(phases[phase])) for phase in PHASES]
    show("The moments of the kills", ("moment", "kills"), rows)
    out.print(f"{saved} cells stood in a killed process's journal only, and the next start delivered them")


def _verdict(kills: int, grids: int, found: Found, in_journal: int) -> bool:
    lost = grids * CELLS - found.cells
    out.print(
        f"{kills} kills, {found.cells:,} cells: {lost} lost, {found.doubled} doubled, {found.open} open, "
        f"{found.unreadable} unreadable, {in_journal} journals left"
    )
    if found.stray:
        out.print(f"{found.stray} folders of texts belong to no run: their process was killed before it stored them")
    return not any((lost, found.doubled, found.open, found.unreadable, in_journal))


if __name__ == "__main__":
    sys.exit(main())
