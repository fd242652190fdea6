"""A command as a user starts it, from its start to its exit: how long it takes, and the most memory it has."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Went(NamedTuple):
    seconds: float
    peak_mb: float
    printed: str


def timed(home: Path, *words: str, environment: Mapping[str, str] | None = None) -> Went:
    """Runs `tipbench` with these words; an end other than a good one ends the measurement."""
    variables = {**os.environ, "TIPBENCH_HOME": str(home), **(environment or {})}
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "tipbench", *words], env=variables, stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"tipbench {words[0]} ended with {process.returncode}")
    return Went(seconds, used.ru_maxrss * 1024 / 1e6, printed)
