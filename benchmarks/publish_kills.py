"""SIGKILL in `tipbench publish` at random moments, then the same command again: nothing doubled, nothing missing.

    .venv/bin/python -m benchmarks.publish_kills                    # 20 kills, tipbench's own database, 10 minutes
    .venv/bin/python -m benchmarks.publish_kills --store server     # a real MLflow server instead
    .venv/bin/python -m benchmarks.publish_kills --kills 3 --sample 5

The experiment has 96 cells with 480 candidates, judged by two judges. What MLflow holds after each kill
and repeat is compared with an undisturbed publish: traces, spans, assessments, prompts, aliases and dataset records.
Then all is taken back, and nothing may be left. Also measured: traces a second, a publish that finds nothing to do,
and how long a collection into the same store takes beside a publish.
"""

import argparse
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.integration.filling import fill
from tests.integration.mlflow_server import MlflowServer

from benchmarks.parts.collecting import environment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show
from tipbench.bench.bench import Bench
from tipbench.bench.context import Context
from tipbench.bench.publish.publish import take_back
from tipbench.core.settings import Settings

EXPERIMENT = "tip-bench-publish"
MODELS = "scripted/a,scripted/b,scripted/c,scripted/d"
BESIDE = ("--models", "scripted/a", "--prompts", "v1")  # 8 cells
_CONTENT = {
    "traces": "SELECT request_id, timestamp_ms, status, request_preview, response_preview FROM trace_info",
    "tags": "SELECT request_id, key, value FROM trace_tags WHERE key != 'mlflow.artifactLocation'",
    "metadata": "SELECT request_id, key, value FROM trace_request_metadata",
    "spans": "SELECT trace_id, span_id, content FROM spans",
    "assessments": "SELECT assessment_id, trace_id, name, value, source_type, source_id, rationale FROM assessments",
    "prompts": "SELECT name, key, value FROM registered_model_tags",
    "versions": "SELECT name, version, key, value FROM model_version_tags",
    "aliases": "SELECT name, alias, version FROM registered_model_aliases",
    "datasets": "SELECT name, destination_id FROM evaluation_datasets JOIN entity_associations "
    "ON source_id = dataset_id",
    "records": "SELECT inputs FROM evaluation_dataset_records",
}


class Place:
    """A store with the experiment, its database file, and the command to publish it."""

    def __init__(self, home: Path, database: Path, url: str) -> None:
        self.home, self.database, self.url = home, database, url
        self.flags = ("--experiment", EXPERIMENT, "--mlflow-url", url)

    def run(self, *words: str) -> float:
        """Run a command that has to end well; return its seconds."""
        started = time.monotonic()
        done = subprocess.run(_command(*words), env=environment(self.home), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"tipbench {' '.join(words[:2])} ended with {done.returncode}: {done.stderr[-500:]}")
        if words[0] == "publish":
            out.print(f"  {done.stdout.splitlines()[0]}", style="dim")
        return time.monotonic() - started

    def publish(self) -> float:
        return self.run("publish", *self.flags)

    def start_publishing(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            _command("publish", *self.flags),
            env=environment(self.home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def content(self) -> dict[str, list[Any]]:
        with closing(sqlite3.connect(self.database, timeout=60)) as opened:
            return {name: sorted(map(repr, opened.execute(query))) for name, query in _CONTENT.items()}

    def rows(self) -> int:
        with closing(sqlite3.connect(self.database, timeout=60)) as opened:
            counts = [opened.execute(f"SELECT count(*) FROM ({query})").fetchone()[0] for query in _CONTENT.values()]
        return int(sum(counts))

    def take_back(self) -> None:
        settings = Settings(environment(self.home))
        with Bench(EXPERIMENT, context=Context(settings=settings), mlflow_url=self.url) as bench:
            take_back(bench.store, bench.experiment)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tipbench", *words]


@contextmanager
def made_place(kind: str, folder: Path, sample: int) -> Iterator[Place]:
    if kind == "server":
        with MlflowServer.start(folder / "mlflow") as server:
            yield _filled(Place(folder / "home", folder / "mlflow" / "mlflow.db", server.url), folder, sample)
    else:
        database = folder / "m.db"
        yield _filled(Place(folder / "home", database, f"sqlite:///{database}"), folder, sample)


def _filled(place: Place, folder: Path, sample: int) -> Place:
    place.run("collect", "--models", MODELS, *place.flags)
    for judge in ("lena", "ben"):
        file = folder / f"{judge}.json"
        place.run("judge", "--judge", judge, "--export", str(file), "--sample", str(sample), *place.flags)
        fill(file)
        place.run("judge", "--apply", str(file), *place.flags)
    return place


def _killed_and_repeated(place: Place, rows: int, wait_s: float) -> int:
    """Publish, kill it moments after MLflow has so many rows, and publish again; return how many there were by then."""
    process = place.start_publishing()
    while place.rows() < rows and process.poll() is None:
        time.sleep(0.02)
    time.sleep(wait_s)
    process.kill()
    process.wait()
    time.sleep(1)  # MLflow's own server, if it was started for a file, ends with it
    left = place.rows()
    place.publish()
    return left


def _collecting_s(place: Place, experiment: str) -> float:
    return place.run("collect", *BESIDE, "--experiment", experiment, "--mlflow-url", place.url)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--store", choices=["file", "server"], default="file")
    parser.add_argument("--sample", type=int, default=1, help="candidates of each cell that are judged")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    drawn = random.Random(given.seed)
    broken = 0
    with scratch_folders() as new_folder, made_place(given.store, new_folder(), given.sample) as place:
        empty = place.content()
        whole_s = place.publish()
        expected = place.content()
        again_s = place.publish()
        broken += place.content() != expected
        place.take_back()
        broken += place.content() != empty
        moments: list[int] = []
        rows = sum(map(len, expected.values()))
        for number in range(given.kills):
            most = 40 if number % 4 == 0 else rows  # every fourth among prompts and dataset, which come first
            moments.append(_killed_and_repeated(place, drawn.randint(0, most), drawn.uniform(0, 0.3)))
            found = place.content()
            for name in [name for name in expected if found[name] != expected[name]]:
                out.print(f"after a kill, {name} differ: {len(found[name])}, not {len(expected[name])}")
                broken += 1
            place.take_back()
            broken += place.content() != empty
        alone_s = _collecting_s(place, "tip-bench-alone")
        process = place.start_publishing()
        time.sleep(0.4 * whole_s)
        beside_s = _collecting_s(place, "tip-bench-beside")
        is_beside = process.poll() is None
        process.wait()
    count = len(expected["traces"])
    show(
        f"{count} traces with {len(expected['assessments'])} assessments, store: {given.store}",
        ("what", "measured"),
        [
            ("publish, from start to exit", f"{whole_s:.1f} s, {count / whole_s:.0f} traces/s"),
            ("publish again, nothing to do", f"{again_s:.1f} s"),
            (f"of {rows} rows, kills left", ", ".join(map(str, sorted(moments)))),
            ("a collection of 8 cells alone", f"{alone_s:.1f} s"),
            (f"the same {'beside' if is_beside else 'after'} a publish", f"{beside_s:.1f} s"),
        ],
    )
    out.print(f"{given.kills} kills, each repeated and taken back: {broken} states differ from an undisturbed publish")
    return min(broken, 1)


if __name__ == "__main__":
    sys.exit(main())
