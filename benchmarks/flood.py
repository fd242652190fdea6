"""A minute of bad clients on both servers at once: who has the right token must not notice.

    .venv/bin/python -m benchmarks.flood                 # a minute for each server
    .venv/bin/python -m benchmarks.flood --seconds 10

200 requests a second with stale tokens, 20 bad logins a second (`tipbench serve` alone has them), 1,000 connections
that send half a header, 100 that send a body byte by byte, stalled callbacks among them; all to the loopback. Beside
them, requests with the right token and to /health. Promises: none of those is refused or broken off, p99 below 1 s,
and the server's memory grows by less than 200 MB.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tests.integration.recommending import KEY, Recommending
from tests.integration.serving import TOKEN, Served
from tests.recommender.service.asking import request

from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show
from tipbench.bench.judge.judges.webhook import SIGNATURE_HEADER, TIMESTAMP_HEADER

STALE_A_SECOND = 200
LOGINS_A_SECOND = 20
GOOD_A_SECOND = 20
HALF_OPEN = 1_000
SLOW_BODIES = 100
MOST_GROWTH = 200_000_000
_HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Half: "


@dataclass
class Figures:
    """Of one sort of request."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)] if self.seconds else float("inf")


@dataclass(frozen=True)
class Target:
    host: str
    port: int
    paths: tuple[tuple[str, str, bytes], ...]  # method, path, body of what the right token asks for
    token: str
    has_logins: bool


def message(method: str, path: str, headers: Mapping[str, str], body: bytes = b"", length: int | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or length:
        lines.append(f"Content-Length: {length or len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def ask(target: Target, sent: bytes, figures: Figures | None = None) -> None:
    """One request on a connection of its own, with its status and how long it took."""
    started = time.monotonic()
    status = "broken off"
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(target.host, target.port)
            writer.write(sent)
            line = await reader.readline()
            status = line.split()[1].decode() if line else "broken off"
            writer.close()
    except TimeoutError:
        status = "no answer in 10 s"
    except OSError:
        pass
    if figures is not None:
        figures.statuses[status] += 1
        figures.seconds.append(time.monotonic() - started)


async def at_rate(rate: float, until: float, send: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """Starts `send` so many times a second, whether earlier ones were answered or not."""
    running: set[asyncio.Task[None]] = set()
    number, began = 0, time.monotonic()
    while time.monotonic() < until:
        task = asyncio.create_task(send(number))
        running.add(task)
        task.add_done_callback(running.discard)
        number += 1
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
    if running:
        await asyncio.wait(running, timeout=12)


async def half_open(target: Target, until: float, opened: Counter[str]) -> None:
    """Holds a connection with half a header; opens another when it is closed."""
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection(target.host, target.port)
            opened["half headers"] += 1
            writer.write(_HALF)
            async with asyncio.timeout(max(0.1, until - time.monotonic())):
                await reader.read()
            writer.close()
        except (OSError, TimeoutError):
            await asyncio.sleep(0.1)


async def slow_body(target: Target, until: float, opened: Counter[str], callback: bool) -> None:
    while time.monotonic() < until:
        headers = {"Content-Type": "application/json"}
        if callback:
            headers |= {TIMESTAMP_HEADER: str(int(time.time())), SIGNATURE_HEADER: "sha256=00"}
            head = message("POST", "/api/judging/callback/0123456789abcdef", headers, length=40_000_000)
        elif target.has_logins:
            head = message("POST", "/login", {**headers, "Sec-Fetch-Site": "same-origin"}, length=5_000)
        else:
            head = message("POST", "/score", {**headers, "Authorization": f"Bearer {target.token}"}, length=5_000)
        try:
            _, writer = await asyncio.open_connection(target.host, target.port)
            opened["slow bodies"] += 1
            writer.write(head)
            while time.monotonic() < until:
                writer.write(b"x" * (20_000 if callback else 1))
                await writer.drain()
                await asyncio.sleep(1)
            writer.close()
        except OSError:
            await asyncio.sleep(0.1)


async def flood(target: Target, seconds: float) -> tuple[dict[str, Figures], Counter[str]]:
    until = time.monotonic() + seconds
    opened: Counter[str] = Counter()
    found = {name: Figures() for name in ("right token", "/health", "stale token", "bad login")}
    json_type = {"Content-Type": "application/json"}
    bearer = {**json_type, "Authorization": f"Bearer {target.token}"}
    old = {**json_type, "Authorization": f"Bearer stale-{'0' * 30}"}
    good = [message(method, path, bearer, body) for method, path, body in target.paths]
    stale = [message(method, path, old, body) for method, path, body in target.paths]
    form = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    login = message("POST", "/login", form, b"token=guessed-again-and-again")
    tasks = [
        *(half_open(target, until, opened) for _ in range(HALF_OPEN)),
        *(slow_body(target, until, opened, target.has_logins and one % 2 == 0) for one in range(SLOW_BODIES)),
        at_rate(STALE_A_SECOND, until, lambda n: ask(target, stale[n % len(stale)], found["stale token"])),
        at_rate(GOOD_A_SECOND, until, lambda n: ask(target, good[n % len(good)], found["right token"])),
        at_rate(GOOD_A_SECOND, until, lambda _n: ask(target, message("GET", "/health", {}), found["/health"])),
    ]
    if target.has_logins:
        tasks.append(at_rate(LOGINS_A_SECOND, until, lambda _n: ask(target, login, found["bad login"])))
    await asyncio.gather(*tasks)
    return found, opened


def measure(name: str, served: Served, target: Target, seconds: float) -> bool:
    process = psutil.Process(served.pid)
    before = process.memory_info().rss
    found, opened = asyncio.run(flood(target, seconds))
    grown = _peak(process) - before
    show(
        f"tipbench {name}, {seconds:g} s",
        ("requests", "answers", "p50", "p99", "longest"),
        [
            (
                sort,
                ", ".join(f"{count} × {status}" for status, count in sorted(figures.statuses.items())),
                f"{sorted(figures.seconds)[len(figures.seconds) // 2] * 1000:.0f} ms",
                f"{figures.p99 * 1000:.0f} ms",
                f"{max(figures.seconds) * 1000:.0f} ms",
            )
            for sort, figures in found.items()
            if figures.seconds
        ],
    )
    out.print(
        f"{opened['half headers']} half headers and {opened['slow bodies']} slow bodies were begun; memory grew by "
        f"{grown / 1e6:.0f} MB"
    )
    passed = grown < MOST_GROWTH
    for sort in ("right token", "/health"):
        passed &= set(found[sort].statuses) == {"200"} and found[sort].p99 < 1.0
    out.print(f"{name}: {'passed' if passed else 'NOT KEPT'}")
    return passed


def _peak(process: psutil.Process) -> int:
    """The most memory that the process ever held."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _at(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    passed = True
    with scratch_folders() as new_folder:
        home = str(new_folder())
        server = Served(TIPBENCH_HOME=home, TIPBENCH_JUDGE_SECRET="for-measuring")
        paths = (("GET", "/api/jobs", b""), ("GET", "/api/judging/status", b""), ("GET", "/api/bench/experiments", b""))
        try:
            passed &= measure("serve", server, Target(*_at(server.url), paths, TOKEN, True), given.seconds)
        finally:
            server.end()
        service = Recommending(TIPBENCH_HOME=home)
        score = json.dumps(request("e1")).encode()
        target = Target(*_at(service.url), (("POST", "/score", score), ("GET", "/stats/egreedy/u1", b"")), KEY, False)
        try:
            passed &= measure("recommend serve", service, target, given.seconds)
        finally:
            service.end()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
