"""`tipbench backup` killed (SIGKILL) 20 times at random moments while everything in the home is at work.

    .venv/bin/python -m benchmarks.backup_kills                       # some minutes
    .venv/bin/python -m benchmarks.backup_kills --kills 5 --seed 3    # other moments

Both servers run, the recommender's with two workers and clients that score and reward; a judge changes notes; one
collection after the other fills the database. Between kills, backups are allowed to finish. Each of these is restored
to another place: everything that was acknowledged before it began must be there, every state whole and the sum of its
events, every cell once with its texts, the database sound, and `compare` and `recommend serve` work on it. Under a
name that was asked for, there must never be anything but a whole backup.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from signal import SIGKILL
from statistics import median
from typing import NamedTuple

from tests.integration.command import tipbench_process
from tests.integration.recommending import recommending
from tests.integration.under_load import POLICY, Acknowledged, Load, home_at_work, problems_of

from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show
from tipbench.core.backups import finished_backups

REPEATS, LATENCY_S = 20, 0.1  # a collection has 480 cells and takes a minute
KILLS_BETWEEN = 2  # backups that are allowed to finish


class Finished(NamedTuple):
    file: Path
    acknowledged: Acknowledged  # before it began
    seconds: float
    writing_s: float  # of these


class Backups:
    """Makes backups of a home, and kills most of them."""

    def __init__(self, home: Path, folder: Path, load: Load, seed: int) -> None:
        self._home = home
        self.folder = folder
        self._load = load
        self._drawn = random.Random(seed)
        self._count = 0
        self.finished: list[Finished] = []
        self.moments: Counter[str] = Counter()

    def kill(self) -> None:
        """Make a backup and kill it: every fourth any time after its start, the others once it writes."""
        writing = self.moments.total() % 4 > 0
        took_s = median([one.writing_s if writing else one.seconds for one in self.finished])
        self._make(self._drawn.uniform(0, took_s), writing)

    def finish(self) -> None:
        self._make(inf, False)

    def _make(self, moment_s: float, writing: bool) -> None:
        """Make a backup that is killed so many seconds after its start, or after it begins to write."""
        self._count += 1
        file = self.folder / f"{self._count:03}.tar.gz"
        acknowledged, started = self._load.acknowledged(), time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "tipbench", "backup", str(file)],
            env={**os.environ, "TIPBENCH_HOME": str(self._home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        written_since = inf
        while process.poll() is None:
            now = time.monotonic()
            if written_since == inf and any(self.folder.glob(f".{file.name}.*")):
                written_since = now
            if now - (written_since if writing else started) > moment_s:
                process.kill()
                process.wait()
                break
            time.sleep(0.005)
        ended = time.monotonic()
        if process.returncode == -SIGKILL:
            left = any(self.folder.glob(f".{file.name}.*"))
            before = "before it wrote anything" if written_since == inf else "after the file had its name"
            self.moments["while it was written" if left else before] += 1
        elif process.returncode or not file.exists():
            raise SystemExit(f"tipbench backup ended with {process.returncode}")
        if file.exists():
            self.finished.append(Finished(file, acknowledged, ended - started, ended - written_since))


def restored_problems(one: Finished, place: Path) -> Iterator[str]:
    done = tipbench_process("restore", str(one.file), TIPBENCH_HOME=str(place))
    if done.status:
        yield f"{one.file.name} can't be restored: {done.err}"
        return
    yield from problems_of(place, one.acknowledged)
    compared = tipbench_process("compare", "--experiment", max(one.acknowledged.cells), TIPBENCH_HOME=str(place))
    if compared.status:
        yield f"compare: {compared.err}"
    event, rewarded = random.Random(one.file.name).choice(sorted(one.acknowledged.events.items()))
    with recommending(TIPBENCH_HOME=str(place)) as service, service.client() as client:
        again = {"user_id": rewarded.user_id, "event_id": event, "reward": rewarded.reward}
        status = client.post(f"/reward/{POLICY}", json=again).json().get("status")
    if status != "duplicate":
        yield f"recommend serve: the reward of {event} is {status}"


def check(home: Path, backups: Backups, new_folder: Callable[[], Path]) -> list[str]:
    problems = []
    files = {one.file for one in backups.finished}
    if set(backups.folder.iterdir()) != files:
        problems.append(f"{backups.folder} holds something else than the backups that finished")
    if {noted.path for noted in finished_backups(home)} != files:
        problems.append("the list of finished backups is not that of the files")
    for one in backups.finished:
        found = list(restored_problems(one, new_folder() / "home"))
        problems += [f"{one.file.name}: {problem}" for problem in found]
        out.print(f"{one.file.name} restored: {len(found)} problems", style="dim")
    return problems


def verdict(backups: Backups, problems: list[str]) -> bool:
    show("The moments of the kills", ("moment", "kills"), [(name, str(n)) for name, n in backups.moments.items()])
    last = backups.finished[-1]
    took_s = median([one.seconds for one in backups.finished])
    out.print(
        f"acknowledged before the last one began: {len(last.acknowledged.events):,} rewards, "
        f"{sum(last.acknowledged.cells.values()):,} cells; a backup took {took_s:.1f} s (median)"
    )
    for problem in problems[:10]:
        out.print(problem)
    out.print(
        f"{backups.moments.total()} kills, {len(backups.finished)} backups finished and restored: "
        f"{len(problems) or 'no'} problems"
    )
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    asked = parser.parse_args()
    with scratch_folders() as new_folder:
        home, folder, backups_folder = new_folder(), new_folder(), new_folder()
        with home_at_work(home, folder, REPEATS, LATENCY_S) as load:
            while not all(load.acknowledged()):
                time.sleep(0.1)
            backups = Backups(home, backups_folder, load, asked.seed)
            backups.finish()
            while backups.moments.total() < asked.kills:
                backups.kill()
                if backups.moments.total() % KILLS_BETWEEN == 0:
                    backups.finish()
                out.print(f"{backups.moments.total()} kills, {len(backups.finished)} finished", style="dim")
            backups.finish()
        problems = check(home, backups, new_folder)
    return 0 if verdict(backups, problems) else 1


if __name__ == "__main__":
    sys.exit(main())
