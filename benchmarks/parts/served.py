"""A command that serves, as a user starts it: a process of its own, on a port of its own."""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.parts.checkouts import THIS, Checkout

_START_S = 60.0
_STOP_S = 20.0


class Served(NamedTuple):
    address: str
    process: "subprocess.Popen[bytes]"


@contextmanager
def served(
    home: Path, words: tuple[str, ...], environment: dict[str, str], checkout: Checkout = THIS
) -> Iterator[Served]:
    """Of tipbench. It ends with the block, unless it has ended before."""
    settings = {**checkout.environment, **environment}
    with started([*checkout.command, *words, "--port", "0"], home, settings) as service:
        yield service


@contextmanager
def started(command: Sequence[str], home: Path, environment: Mapping[str, str]) -> Iterator[Served]:
    """Of anything that prints its address."""
    log = home / "serve.log"
    with log.open("w") as said:
        process = subprocess.Popen(
            command,
            env=os.environ | {"TIPBENCH_HOME": str(home)} | dict(environment),
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Served(_address(process, log), process)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"http://[0-9.]+:\d+", log.read_text()):
            return found[0]
        time.sleep(0.02)
    raise SystemExit(f"it did not say where it serves:\n{log.read_text()[-2000:]}")
