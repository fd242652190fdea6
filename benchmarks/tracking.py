"""Finished runs a second into MLflow: tipbench's way against MLflow's MlflowClient and its fluent API.

    .venv/bin/python -m benchmarks.tracking            # some minutes
    .venv/bin/python -m benchmarks.tracking --rounds 5

Every way writes the same runs, those of real cells: 17 tags, 13 params, 14 metrics and four texts (prompt, rubric, raw
answer, candidates); then the same without the texts. They go to an MLflow server over REST, and in this process into
one SQLite file, which all ways share. tipbench writes 64 runs at a time, as a collection does. MLflow's ways are used
as they come: they look each run up once more to print a link to it. Afterwards all runs must be FINISHED and
all texts be there.
"""

import argparse
import io
import os
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.integration.mlflow_server import MlflowServer

from benchmarks.parts.drafts import finished_cells
from benchmarks.parts.run_writers import Writer, mlflow_client, mlflow_fluent, tipbench
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.stored import opened
from benchmarks.parts.table import out, show, verdict
from tipbench.bench.tracking.store import RunDraft

WRITERS: dict[str, Writer] = {"tipbench": tipbench, "MlflowClient": mlflow_client, "fluent API": mlflow_fluent}
WARM_UP = 8  # runs that are written and not timed
PROMISES = {"server": 1.5, "SQLite file": 30.0}  # times the fluent API


class StoreProvider(NamedTuple):
    name: str
    url: str
    folder: Path  # the texts lie somewhere below
    runs: dict[str, int]  # how many each writer writes: enough for some seconds


class Key(NamedTuple):
    place: str
    writer: str
    with_texts: bool


def runs_a_second(place: StoreProvider, writer: Writer, experiment: str, drafts: Sequence[RunDraft]) -> float:
    with opened(place.url) as store:
        made = store.ensure_experiment(experiment, {})
        texts_before = _text_files(place.folder)
        with redirect_stdout(io.StringIO()), writer(place.url, made) as write:  # MLflow prints a link for each run
            write(drafts[:WARM_UP])
            started = time.monotonic()
            write(drafts[WARM_UP:])
            seconds = time.monotonic() - started
        finished = sum(run.status == "FINISHED" for run in store.iter_runs(made, {}))
    wanted = (len(drafts), sum(len(draft.texts) for draft in drafts))
    if (finished, _text_files(place.folder) - texts_before) != wanted:
        raise SystemExit(f"{experiment}: not all of the {wanted[0]} runs and {wanted[1]} texts are there")
    return (len(drafts) - WARM_UP) / seconds


def _text_files(folder: Path) -> int:
    return sum(name.endswith((".txt", ".md", ".json")) for _, _, names in os.walk(folder) for name in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured, in turn")
    rounds = parser.parse_args().rounds
    measured: dict[Key, list[float]] = {}
    with scratch_folders() as new_folder:
        os.environ["TIPBENCH_HOME"] = str(new_folder())
        served, embedded = new_folder(), new_folder()
        with MlflowServer.start(served) as server:
            places = (
                StoreProvider("server", server.url, served / "artifacts", dict.fromkeys(WRITERS, 150)),
                StoreProvider(
                    "SQLite file",
                    f"sqlite:///{embedded / 'mlflow.db'}",
                    embedded,
                    {"tipbench": 960, "MlflowClient": 100, "fluent API": 100},
                ),
            )
            for number in range(1, rounds + 1):
                for place in places:
                    _one_round(number, place, measured)
    _show(measured, rounds)
    passed = [
        verdict(
            f"{place}, with texts: tipbench / fluent API", _times_fluent(measured, Key(place, "tipbench", True)), wanted
        )
        for place, wanted in PROMISES.items()
    ]
    return 0 if all(passed) else 1


def _one_round(number: int, place: StoreProvider, measured: dict[Key, list[float]]) -> None:
    for with_texts in (True, False):
        for name, writer in WRITERS.items():
            drafts = finished_cells(WARM_UP + place.runs[name])
            if not with_texts:
                drafts = [replace(draft, texts={}) for draft in drafts]
            experiment = f"tip-bench {name} {'with' if with_texts else 'without'} texts {number}"
            rate = runs_a_second(place, writer, experiment, drafts)
            measured.setdefault(Key(place.name, name, with_texts), []).append(rate)
            out.print(f"round {number}: {place.name}, {experiment}: {rate:.1f} runs/s", style="dim")


def _times_fluent(measured: dict[Key, list[float]], key: Key) -> float:
    """The median over the rounds: within a round, the machine was as busy for both."""
    fluent = measured[key._replace(writer="fluent API")]
    return median(ours / theirs for ours, theirs in zip(measured[key], fluent, strict=True))


def _show(measured: dict[Key, list[float]], rounds: int) -> None:
    rows = []
    for place in PROMISES:
        for name in WRITERS:
            row = [f"{name} → {place}"]
            for with_texts in (True, False):
                key = Key(place, name, with_texts)
                rates = measured[key]
                row.append(f"{median(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})")
                row.append(f"{_times_fluent(measured, key):.1f}")
            rows.append(row)
    columns = ("way", "with texts, runs/s", "times fluent", "without texts, runs/s", "times fluent")
    show(f"Finished runs into MLflow: median and range of {rounds} rounds", columns, rows)


if __name__ == "__main__":
    sys.exit(main())
