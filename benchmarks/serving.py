"""Many readers at once on `tipbench serve` with 10,000 judged runs: errors, requests a second, and how long each waits.

    .venv/bin/python -m benchmarks.serving                       # 50 clients for a minute; three minutes in all
    .venv/bin/python -m benchmarks.serving --clients 10 --seconds 10
    .venv/bin/python -m benchmarks.serving --before FOLDER       # beside the tipbench in another checkout

Each client asks for one thing after another, drawn at random from what people and scripts read. Clients and server
share the machine. Before that, the leaderboard is asked for by one client alone: at first sight, when the server has to
read all runs, and again, when it has what it needs.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import aiohttp

from benchmarks.parts.checkouts import Checkout, add_before, checkouts
from benchmarks.parts.judged import EXPERIMENT, judged_experiment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import served
from benchmarks.parts.table import conclude, out, show
from benchmarks.parts.timed import peak_memory_mb

TOKEN = "a-token-for-measuring-and-for-nothing-else"
MOST_P95_MS = 250.0
LEADERBOARD = f"/api/bench/leaderboard/{EXPERIMENT}"
MODELS = ("scripted/a", "scripted/b", "scripted/c", "scripted/d")
ENDPOINTS: Mapping[str, Callable[[random.Random], str]] = {
    "GET /api/bench/experiments": lambda _: "/api/bench/experiments",
    "GET /api/bench/runs/…": lambda drawn: f"/api/bench/runs/{EXPERIMENT}?{_some_runs(drawn)}",
    "GET /api/bench/leaderboard/…": lambda _: LEADERBOARD,
    "GET /api/jobs": lambda _: "/api/jobs",
    "page: experiments": lambda _: "/experiments",
    "page: leaderboard": lambda _: f"/experiments/leaderboard?experiment={EXPERIMENT}",
    "page: runs": lambda drawn: f"/experiments/runs?experiment={EXPERIMENT}&{_some_runs(drawn)}",
}


@dataclass
class Readings:
    """What all clients met with, by endpoint."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def _some_runs(drawn: random.Random) -> str:
    offset = 50 * drawn.randrange(50)  # a model has 2,502 of the runs
    return urlencode({"limit": 50, "offset": offset, "model": drawn.choice(MODELS)})


def _session(address: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        address,
        headers={"Authorization": f"Bearer {TOKEN}"},
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=120),
    )


async def first_and_again(address: str, times: int) -> tuple[float, list[float]]:
    """Seconds for the leaderboard: by the first who asks, and by the next ones."""
    async with _session(address) as session:
        seconds = []
        for _ in range(1 + times):
            started = time.perf_counter()
            async with session.get(LEADERBOARD) as answer:
                await answer.read()
                if answer.status != 200:
                    raise SystemExit(f"{LEADERBOARD} answered {answer.status}; the figures would mean nothing")
            seconds.append(time.perf_counter() - started)
    return seconds[0], seconds[1:]


async def read_together(address: str, clients: int, seconds: float) -> Readings:
    readings = Readings()
    async with _session(address) as session:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(_client(session, until, random.Random(number), readings) for number in range(clients)))
    return readings


async def _client(session: aiohttp.ClientSession, until: float, drawn: random.Random, readings: Readings) -> None:
    while (started := time.perf_counter()) < until:
        name, path_of = drawn.choice(tuple(ENDPOINTS.items()))
        try:
            async with session.get(path_of(drawn), allow_redirects=False) as answer:
                await answer.read()
                problem = "" if answer.status == 200 else f"status {answer.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            problem = type(error).__name__
        if problem:
            readings.errors[name].append(problem)
        readings.seconds[name].append(time.perf_counter() - started)


def _row(name: str, waits: Sequence[float], errors: Sequence[str], seconds: float) -> tuple[str, ...]:
    in_order = sorted(waits)
    waited = [in_order[min(int(len(waits) * share), len(waits) - 1)] for share in (0.5, 0.95, 0.99)]
    in_ms = [f"{wait * 1000:.0f}" for wait in waited]
    return name, f"{len(waits):,}", f"{len(waits) / seconds:.1f}", *in_ms, str(len(errors))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50, help="how many ask at once")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--rounds", type=int, default=3, help="how often the first look is measured")
    add_before(parser)
    asked = parser.parse_args()
    with scratch_folders() as new_folder:
        home, folder = new_folder(), new_folder()
        os.environ["TIPBENCH_HOME"] = str(home)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            cells = apart.submit(judged_experiment, folder / "mlflow.db").result()
        os.sync()  # or the disk would still be busy with them
        out.print(f"{cells:,} judged runs are stored", style="dim")
        reached = [_measure(one, folder / "mlflow.db", new_folder, asked) for one in checkouts(asked.before)]
    return 0 if reached[0] else 1  # what was before has nothing to reach


def _measure(checkout: Checkout, database: Path, new_folder: Callable[[], Path], asked: argparse.Namespace) -> bool:
    first: list[float] = []
    again: list[float] = []
    words, token = ("serve", "--mlflow-url", f"sqlite:///{database}"), {"TIPBENCH_ADMIN_TOKEN": TOKEN}
    for number in range(asked.rounds):
        with served(new_folder(), words, token, checkout) as server:
            address = server.address
            fresh, repeated = asyncio.run(first_and_again(address, times=10))
            first.append(fresh)
            again.extend(repeated)
            if number == asked.rounds - 1:
                readings = asyncio.run(read_together(address, asked.clients, asked.seconds))
                peak_mb = peak_memory_mb(server.process.pid)
    title = f"{checkout.name}: {asked.clients} clients at once for {asked.seconds:g} s"
    return _report(title, readings, asked.seconds, first, again, peak_mb)


def _report(
    title: str, readings: Readings, seconds: float, first: Sequence[float], again: Sequence[float], peak_mb: float
) -> bool:
    rows = [_row(name, readings.seconds[name], readings.errors[name], seconds) for name in ENDPOINTS]
    every = [wait for waits in readings.seconds.values() for wait in waits]
    errors = [f"{name}: {problem}" for name, problems in readings.errors.items() for problem in problems]
    rows.append(_row("all", every, errors, seconds))
    columns = ("endpoint", "requests", "a second", "p50 ms", "p95 ms", "p99 ms", "errors")
    show(title, columns, rows)
    conclude(
        f"Leaderboard, one client: {median(first) * 1000:.0f} ms at first sight, {median(again) * 1000:.1f} ms again — "
        f"{median(first) / median(again):.0f} times as quick. "
        f"Peak memory of the server: {peak_mb:.0f} MB"
    )
    conclude(f"{len(errors)} errors (wanted: none) — {'; '.join(sorted(set(errors))[:5]) or 'reached'}")
    p95_ms = sorted(every)[int(len(every) * 0.95)] * 1000
    kept = "reached" if p95_ms < MOST_P95_MS else "too slow"
    conclude(f"p95 of all: {p95_ms:.0f} ms (wanted: under {MOST_P95_MS:g} ms) — {kept}")
    return not errors and p95_ms < MOST_P95_MS


if __name__ == "__main__":
    sys.exit(main())
