"""Where the time goes of what people wait for: which modules the processor is in, by a sampling profiler.

    .venv/bin/python -m benchmarks.where          # a minute and a half; installs py-spy on demand

A collection of 960 cells, `compare` (nothing cached), `judge --export` and `--apply` of 10,008 runs in a database file,
from start to exit, and the recommender's service while 16 clients ask it. A sample belongs to the innermost of our
modules that is being run, whatever that calls: SQLite's and the disk's time is `bench.tracking.tables`'s. Imports are
taken together. Threads that wait are not sampled; two that work at once count twice. Makes no promise.
"""

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.integration.filling import fill

from benchmarks import peers
from benchmarks.parts.checkouts import THIS, Checkout
from benchmarks.parts.environments import interpreter_with
from benchmarks.parts.judged import EXPERIMENT, SCENARIOS
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import served
from benchmarks.parts.stand_in import stand_in_server
from benchmarks.parts.table import show
from benchmarks.parts.timed import timed
from benchmarks.reading import make_databases
from benchmarks.recommending import KEY, asked_together

PY_SPY = "py-spy==0.4.3"
RATE = 500  # samples a second
SECONDS = 6.0  # of the service
MODULES = 6  # that are shown
CLIENTS = 16
_WAITING = re.compile(r"\((?:concurrent/futures/thread|threading|queue)\.py:\d+\)$")  # some look as if they ran
_MODULE = re.compile(r"\((?:.*/)?src/tipbench/([\w/]+)\.py:\d+\)|\(tipbench/([\w/]+)\.py:\d+\)")


@dataclass(frozen=True)
class Profiled(Checkout):
    """This checkout, whose command runs under the profiler."""

    profiler: Path
    samples: Path

    @property
    def command(self) -> list[str]:
        return [*_record(self.profiler, self.samples), "--", *super().command]


def _record(profiler: Path, samples: Path) -> list[str]:
    return [str(profiler), "record", "--rate", str(RATE), "--format", "raw", "--output", str(samples)]


def modules(samples: Path) -> Counter[str]:
    """Return how many samples each of our modules has; of a stack a line, with its number of samples behind it."""
    found: Counter[str] = Counter()
    for line in samples.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        if not _WAITING.search(stack):
            found[_module(stack)] += int(number)
    return found


def _module(stack: str) -> str:
    if "importlib._bootstrap" in stack:
        return "imports"
    ours = _MODULE.findall(stack)
    return "".join(ours[-1]).replace("/", ".") if ours else stack.rpartition(";")[2].rpartition(":")[0]


def commands(new_folder: Callable[[], Path], profiler: Path) -> Iterator[tuple[str, Counter[str]]]:
    def profiled() -> Profiled:
        return Profiled(THIS.name, THIS.folder, profiler, new_folder() / "samples.txt")

    checkout = profiled()
    with stand_in_server() as server:
        peers.tipbench(new_folder(), server, 0, checkout)
    yield f"collect, {peers.CELLS} cells", modules(checkout.samples)
    databases = make_databases(new_folder, SCENARIOS, with_many=False)
    file = new_folder() / "judge.json"
    home = new_folder()
    for what, database, words in (
        ("compare", databases.judged, ("compare",)),
        ("judge --export", databases.pending, ("judge", "--export", str(file))),
        ("judge --apply", databases.pending, ("judge", "--apply", str(file))),
    ):
        checkout = profiled()
        if words[-2:-1] == ("--apply",):
            fill(file)
        timed(home, *words, "--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{database}", checkout=checkout)
        yield f"{what}, 10,008 runs", modules(checkout.samples)


def service(new_folder: Callable[[], Path], profiler: Path) -> Counter[str]:
    samples = new_folder() / "samples.txt"
    with (
        served(new_folder(), ("recommend", "serve"), {"TIPBENCH_SERVING_KEY": KEY}) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        asking = pool.submit(lambda: asyncio.run(asked_together(running.address, CLIENTS, SECONDS)))
        attach = ["--pid", str(running.process.pid), "--duration", f"{SECONDS:.0f}"]
        subprocess.run([*_record(profiler, samples), *attach], check=True, capture_output=True)
        if refused := asking.result().refused:
            raise SystemExit(f"a request was refused: {refused[0]}")
    return modules(samples)


def main() -> int:
    profiler = interpreter_with("py-spy", [PY_SPY]).with_name("py-spy")
    with scratch_folders() as new_folder:
        rows = [(what, _shares(found)) for what, found in commands(new_folder, profiler)]
        rows.append((f"recommender, {CLIENTS} clients", _shares(service(new_folder, profiler))))
    show("where the processor is", ["what", "share of samples, by module"], rows)
    return 0


def _shares(found: Counter[str]) -> str:
    total = sum(found.values())
    return ", ".join(f"{module} {number / total:.0%}" for module, number in found.most_common(MODULES))


if __name__ == "__main__":
    sys.exit(main())
