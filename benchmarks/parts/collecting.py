"""`tipbench collect` as a user starts it: a process of its own, with a home of its own."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RUSAGE_UNIT = 1 if sys.platform == "darwin" else 1024


class Collection(NamedTuple):
    """One that ended well."""

    seconds: float
    peak_bytes: int  # the most memory that the process held, or one that it started and waited for
    processor_s: float  # of the process, and of those that it started and waited for


def command(database: Path, experiment: str, *words: str) -> list[str]:
    place = ("--experiment", experiment, "--mlflow-url", f"sqlite:///{database}")
    return [sys.executable, "-m", "tipbench", "collect", *place, *words]


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"TIPBENCH_HOME": str(home)}


def collect(home: Path, database: Path, experiment: str, *words: str) -> Collection:
    """From the command's start to its exit; an end other than a good one ends the measurement."""
    with tempfile.TemporaryFile("w+") as said:
        started = time.monotonic()
        process = subprocess.Popen(
            command(database, experiment, *words), env=environment(home), stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise SystemExit(f"tipbench collect ended with {process.returncode}:\n{said.read()[-2000:]}")
    return Collection(seconds, used.ru_maxrss * RUSAGE_UNIT, used.ru_utime + used.ru_stime)
