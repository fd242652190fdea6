"""SIGKILL while scores are on their way: a hand-in to `tipbench serve`, a webhook's answer to it, `judge --apply`.

    .venv/bin/python -m benchmarks.hand_in_kills               # 100 kills, about ten minutes
    .venv/bin/python -m benchmarks.hand_in_kills --kills 12 --seed 3

After each kill a new server looks at the experiment. What was acknowledged must count; a batch that says that it counts
must have reached its runs; the same scores sent again must lead to what an undisturbed hand-in leads to.
"""

import argparse
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.integration.filling import filled
from tests.integration.serving import Served

from benchmarks.apply_kills import content, tipbench
from benchmarks.parts.collecting import environment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show
from tipbench.bench.judge.judges.webhook import SIGNATURE_HEADER, TIMESTAMP_HEADER, batch_key, sign

EXPERIMENT = "tip-bench-handed-in"
SECRET = "a-secret-for-measuring-and-for-nothing-else"
MODELS = "scripted/a,scripted/b,scripted/c"
REPEATS = "6"  # 3 models × 3 prompts × 8 scenarios × 6: 432 cells


@dataclass(frozen=True)
class Bench:
    """A folder with a database, a home and a batch whose items are all scored; put back before each kill."""

    folder: Path
    pristine: Path
    batch: str
    file: dict[str, Any]

    @property
    def database(self) -> Path:
        return self.folder / "m.db"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def put_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.pristine, self.folder)

    def served(self) -> Served:
        return served(self.folder)


def served(folder: Path) -> Served:
    settings = {"TIPBENCH_HOME": str(folder / "home"), "TIPBENCH_JUDGE_SECRET": SECRET}
    return Served("--mlflow-url", f"sqlite:///{folder / 'm.db'}", **settings)


def prepared(new_folder: Callable[[], Path]) -> Bench:
    folder, pristine = new_folder(), new_folder() / "pristine"
    store = ("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{folder / 'm.db'}")
    tipbench(folder / "home", "collect", "--models", MODELS, "--repeats", REPEATS, *store)
    server = served(folder)
    with server.client() as client:
        batch = client.post("/api/judging/next", json={"experiment": EXPERIMENT}).json()["batch"]["batch"]
        file = filled(client.get(f"/api/judging/batches/{batch}").json())
        for item in file["items"]:
            path = f"/api/judging/batches/{batch}/items/{item['slot']}"
            client.patch(path, json={"scores": item["scores"]}).raise_for_status()
    server.end()
    (folder / "judge.json").write_text(json.dumps(file))
    with closing(sqlite3.connect(folder / "m.db")) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(folder, pristine)
    return Bench(folder, pristine, batch, file)


def hand_in(bench: Bench, client: httpx.Client) -> httpx.Response:
    return client.post(f"/api/judging/batches/{bench.batch}/scores")


def answer_later(bench: Bench, client: httpx.Client) -> httpx.Response:
    body, now = json.dumps(bench.file).encode(), int(time.time())
    headers = {
        TIMESTAMP_HEADER: str(now),
        SIGNATURE_HEADER: sign(batch_key(SECRET, bench.batch), now, body),
        "Content-Type": "application/json",
    }
    return client.post(f"/api/judging/callback/{bench.batch}", content=body, headers=headers)


def apply(bench: Bench) -> list[str]:
    store = ("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{bench.database}")
    return [sys.executable, "-m", "tipbench", "judge", *store, "--apply", str(bench.folder / "judge.json")]


WAYS = {"hand-in": hand_in, "webhook's answer": answer_later, "judge --apply": None}


def send(bench: Bench, way: str, after_s: float | None) -> tuple[bool, float]:
    """Send the scores, and kill who takes them after some seconds; whether they were acknowledged, and when."""
    ask = WAYS[way]
    if ask is None:
        process = subprocess.Popen(
            apply(bench), env=environment(bench.home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        started = time.monotonic()
        try:
            acknowledged = process.wait(after_s) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            acknowledged = False
        process.wait()
        return acknowledged, time.monotonic() - started
    server = bench.served()
    with server.client() as client:
        client.get("/health").raise_for_status()
        started = time.monotonic()
        killer = threading.Timer(after_s, server.kill) if after_s is not None else None
        if killer:
            killer.start()
        try:
            acknowledged = ask(bench, client).status_code == 200
        except httpx.TransportError:
            acknowledged = False
        took = time.monotonic() - started
        if killer:
            killer.join()
        else:
            server.end()
    return acknowledged, took


def judged(client: httpx.Client) -> int:
    return int(client.get(f"/api/bench/leaderboard/{EXPERIMENT}").raise_for_status().json()["cells"]["judged"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    drawn = random.Random(given.seed)
    wrong: Counter[str] = Counter()
    moments: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    with scratch_folders() as new_folder:
        bench = prepared(new_folder)
        whole_s: dict[str, float] = {}
        expected: list[Any] = []
        for way in WAYS:
            bench.put_back()
            acknowledged, whole_s[way] = send(bench, way, None)
            assert acknowledged, f"an undisturbed {way} was refused"
            expected = content(bench.database)
        cells = _judged_of(bench)
        for number in range(given.kills):
            way = list(WAYS)[number % len(WAYS)]
            bench.put_back()
            untouched = content(bench.database)
            from_s = 0.5 * whole_s[way] if WAYS[way] is None else 0.0  # a command needs time to start
            acknowledged, _ = send(bench, way, drawn.uniform(from_s, 1.05 * whole_s[way]))
            left = content(bench.database)
            moment = "nothing written" if left == untouched else "all written" if left == expected else "in the middle"
            moments[way][moment] += 1
            _check(bench, way, acknowledged, cells, expected, wrong)
    columns = ("nothing written", "in the middle", "all written")
    rows = [(way, *(str(found[moment]) for moment in columns)) for way, found in moments.items()]
    show(f"{given.kills} kills", ("the kill came in a", *columns), rows)
    for what in ("lost", "counted and not settled", "refused when sent again", "another end than undisturbed"):
        out.print(f"{what}: {wrong[what]}")
    return 1 if wrong else 0


def _judged_of(bench: Bench) -> int:
    server = bench.served()
    with server.client() as client:
        found = judged(client)
    server.end()
    return found


def _check(bench: Bench, way: str, acknowledged: bool, cells: int, expected: list[Any], wrong: Counter[str]) -> None:
    server = bench.served()
    with server.client() as client:
        report = client.get(f"/api/judging/batches/{bench.batch}/report")
        counts = report.status_code == 200 and report.json()["counted"]
        there = judged(client)
        if acknowledged and not counts:
            wrong["lost"] += 1
        if counts and there != cells:
            wrong["counted and not settled"] += 1
        ask = WAYS[way] or hand_in
        again = ask(bench, client)
        if again.status_code != 200 or judged(client) != cells:
            wrong["refused when sent again"] += 1
            out.print(f"{way}: {again.status_code} {again.text[:200]}")
    logged = server.end()
    if "Traceback" in logged:
        out.print(logged[-1500:])
        wrong["a traceback in the server's log"] += 1
    if content(bench.database) != expected:
        wrong["another end than undisturbed"] += 1


if __name__ == "__main__":
    sys.exit(main())
