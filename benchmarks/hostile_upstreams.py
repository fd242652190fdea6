"""Commands whose Ollama, OpenAI-compatible server, MLflow or webhook answers as no server should.

    .venv/bin/python -m benchmarks.hostile_upstreams    # eight minutes; most of them are MLflow's time limit
    .venv/bin/python -m benchmarks.hostile_upstreams --only webhook

Endless, dripping, compressed, redirecting, garbage, HTML: `tests/hostile_server.py` does all of it. Promises: a
sentence and an exit status of 1 or 2 within the time that docs/decisions/0021 states, less than 400 MB of memory, and
what was there before is there afterwards.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.hostile_server import MANNERS, hostile_server

from benchmarks.apply_kills import content, tipbench
from benchmarks.parts.collecting import environment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show

EXPERIMENT = "tip-bench-hostile"
MOST_BYTES = 400_000_000
TIMEOUTS = {"TIPBENCH_ENGINE_TIMEOUT": "5", "TIPBENCH_JUDGE_TIMEOUT": "5"}
GRID = ("--prompts", "v1", "--n-scenarios", "1", "--n-tips", "1")


class Upstream(NamedTuple):
    words: Callable[[str, Path], tuple[str, ...]]  # of the command, for the server's address and the database
    settings: Callable[[str], dict[str, str]]
    within_s: float  # the limit for one exchange, and what a command does around it


def _store(database: Path) -> tuple[str, ...]:
    return ("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{database}")


UPSTREAMS = {
    "ollama": Upstream(
        lambda url, db: ("collect", "--models", "gemma3:1b", "--ollama-url", url, *GRID, *_store(db)),
        lambda _url: {},
        15 + 10,
    ),
    "openai": Upstream(
        lambda _url, db: ("collect", "--models", "openai/x:1b", *GRID, *_store(db)),
        lambda url: {"TIPBENCH_OPENAI_URL": url},
        15 + 10,
    ),
    "mlflow": Upstream(
        lambda url, _db: ("compare", "--experiment", EXPERIMENT, "--mlflow-url", url), lambda _url: {}, 120 + 10
    ),
    "webhook": Upstream(
        lambda _url, db: ("judge", "--run", "webhook", *_store(db)),
        lambda url: {"TIPBENCH_JUDGE_WEBHOOK": url, "TIPBENCH_JUDGE_SECRET": "for-measuring"},
        5 + 10,
    ),
}


class Ended(NamedTuple):
    status: int
    seconds: float
    peak_bytes: int
    said: str


def run(words: tuple[str, ...], settings: dict[str, str]) -> Ended:
    with tempfile.TemporaryFile("w+") as said:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "tipbench", *words], env=settings, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return Ended(process.returncode, time.monotonic() - started, used.ru_maxrss * 1024, said.read())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(UPSTREAMS))
    given = parser.parse_args()
    rows, wrong = [], 0
    with scratch_folders() as new_folder:
        folder = new_folder()
        home, database = folder / "home", folder / "m.db"
        tipbench(home, "collect", "--models", "scripted/a", *GRID, *_store(database))
        for name, upstream in UPSTREAMS.items():
            if given.only not in (None, name):
                continue
            before = content(database)
            for manner in (one for one in MANNERS if one != "drip on a used connection"):
                with hostile_server(manner) as server:
                    settings = environment(home) | TIMEOUTS | upstream.settings(server.url)
                    ended = run(upstream.words(server.url, database), settings)
                problems = _problems(ended, upstream)
                wrong += bool(problems)
                last = ended.said.strip().splitlines()[-1] if ended.said.strip() else ""
                rows.append(
                    (
                        f"{name}, {manner}",
                        f"{ended.seconds:.1f} s",
                        f"{ended.peak_bytes / 1e6:.0f} MB",
                        str(ended.status),
                    )
                )
                for problem in problems:
                    out.print(f"{name}, {manner}: {problem}")
                out.print(f"{name}, {manner}: {last[:230]}", style="dim")
            cells = [row for row in content(database) if row in before]
            if len(cells) < len(before):
                wrong += 1
                out.print(f"{name}: {len(before) - len(cells)} values are gone")
    show("What commands do", ("upstream", "took", "most memory", "exit status"), rows)
    return 1 if wrong else 0


def _problems(ended: Ended, upstream: Upstream) -> list[str]:
    found = []
    if ended.status not in (1, 2):
        found.append(f"ended with {ended.status}")
    if ended.seconds > upstream.within_s:
        found.append(f"took {ended.seconds:.1f} s, {upstream.within_s:g} at most")
    if ended.peak_bytes > MOST_BYTES:
        found.append(f"took {ended.peak_bytes / 1e6:.0f} MB")
    if "Traceback" in ended.said:
        found.append(f"a traceback: {ended.said[-500:]}")
    return found


if __name__ == "__main__":
    sys.exit(main())
