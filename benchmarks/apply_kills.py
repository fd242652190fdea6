"""SIGKILL in `tipbench judge --apply` at random moments, then the same command again: the end must be the same.

    .venv/bin/python -m benchmarks.apply_kills              # 50 kills, about two minutes
    .venv/bin/python -m benchmarks.apply_kills --kills 200 --seed 3

Each kill has a copy of one database of its own: 960 cells, one candidate of each scored, with anchors and repeats.
"""

import argparse
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.integration.filling import fill

from benchmarks.parts.collecting import environment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show

EXPERIMENT = "tip-bench-kills"


def tipbench(home: Path, *arguments: str) -> None:
    done = subprocess.run(
        _command(*arguments), env=environment(home), capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise SystemExit(f"tipbench {' '.join(arguments[:2])} ended with {done.returncode}: {done.stderr[-500:]}")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tipbench", *arguments]


def content(database: Path) -> list[Any]:
    """Everything that an apply writes, but its times."""
    with closing(sqlite3.connect(database)) as opened:
        tags = opened.execute("SELECT run_uuid, key, value FROM tags ORDER BY 1, 2").fetchall()
        metrics = opened.execute("SELECT run_uuid, key, value FROM latest_metrics ORDER BY 1, 2").fetchall()
        history = opened.execute("SELECT run_uuid, key, value, step FROM metrics ORDER BY 1, 2, 4").fetchall()
    volatile = ("tipbench.applied_ms", "tipbench.scores", "tipbench.text:scores-")
    return [row for row in tags if not row[1].startswith(volatile)] + metrics + history


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    drawn = random.Random(given.seed)
    with scratch_folders() as new_folder:
        folder = new_folder()
        home, file = folder / "home", folder / "judge.json"
        store = ("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{folder / 'm.db'}")
        tipbench(home, "collect", "--models", "scripted/a,scripted/b", "--repeats", "20", *store)
        tipbench(home, "judge", *store, "--export", str(file), "--sample", "1")
        fill(file)
        with closing(sqlite3.connect(folder / "m.db")) as opened:
            opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        def copied(name: str) -> tuple[Path, tuple[str, ...]]:
            database = folder / f"{name}.db"
            shutil.copy(folder / "m.db", database)
            return database, ("judge", "--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{database}")

        calm, apply = copied("calm")
        started = time.monotonic()
        tipbench(home, *apply, "--apply", str(file))
        whole_s = time.monotonic() - started
        expected = content(calm)
        counts = {"before anything was written": 0, "in the middle": 0, "after the end": 0}
        different = 0
        for number in range(given.kills):
            database, apply = copied(f"kill-{number}")
            untouched = content(database)
            process = subprocess.Popen(
                _command(*apply, "--apply", str(file)),
                env=environment(home),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(drawn.uniform(0.3, 1.0) * whole_s)
            process.send_signal(signal.SIGKILL)
            process.wait()
            left = content(database)
            moment = "before anything was written" if left == untouched else "in the middle"
            counts["after the end" if left == expected else moment] += 1
            tipbench(home, *apply, "--apply", str(file))
            different += content(database) != expected
    show(
        f"{given.kills} kills in an apply of {whole_s:.1f} s",
        ("the kill came", "times"),
        [(k, str(v)) for k, v in counts.items()],
    )
    out.print(f"{given.kills} kills: {different} ended in another state than an undisturbed apply")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
