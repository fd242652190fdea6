"""A command as a user starts it, from its start to its exit: how long it takes, and the most memory it has."""

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.parts.checkouts import THIS, Checkout


class Went(NamedTuple):
    seconds: float
    peak_mb: float
    printed: str


def timed(home: Path, *words: str, checkout: Checkout = THIS) -> Went:
    """Runs `tipbench` with these words; an end other than a good one ends the measurement."""
    variables = {**os.environ, "TIPBENCH_HOME": str(home), **checkout.environment}
    started = time.monotonic()
    process = subprocess.Popen([*checkout.command, *words], env=variables, stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"tipbench {words[0]} ended with {process.returncode}")
    return Went(seconds, used.ru_maxrss * 1024 / 1e6, printed)


def peak_memory_mb(pid: int) -> float:
    """Of a process that is running."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
