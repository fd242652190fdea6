"""A coding agent judges 96 cells while it misbehaves and is killed: every item is scored once.

    python -m benchmarks.agent_kills
    python -m benchmarks.agent_kills --kills 5

`tipbench judge --run agent` with a stand-in for an agent's program that answers with prose, fences, half an answer,
wrong slots, refusals, rate limits, exit codes and time-outs in turn. It is killed with SIGKILL at random moments and
started again each time, until it ends by itself. Promises: one batch, every item of it has scores, the scores are those
that a faithful judge gives, and no cell waits for a judge any more. Two minutes.
"""

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests import stand_in_agent
from tests.integration.filling import faithful_scores

from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out
from tipbench.bench.bench import Bench
from tipbench.bench.tracking.batches import applied_batch, batch_file, batch_runs

FAULTS = [
    "prose",
    "fence",
    "half",
    "wrong_slot",
    "out_of_range",
    "refusal",
    "rate_limit",
    "crash",
    "error_envelope",
    "file",
    "plain",
    "nothing",
    "time_out",
]
SCALES = dict.fromkeys(("relevance", "actionability", "tone"), (1, 5))


def main() -> int:
    """Judge with kills; return how many promises were broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, metavar="N")
    given = parser.parse_args()
    with scratch_folders() as make_folder:
        folder = make_folder()
        store = f"sqlite:///{folder / 'm.db'}"
        os.environ["TIPBENCH_HOME"] = str(folder / "home")
        with Bench("tip-bench-agent", mlflow_url=store) as bench:
            bench.collect(models="scripted/a,scripted/b,scripted/c,scripted/d", n_tips=5)
        drawn = random.Random(1)
        faults = folder / "faults"
        faults.write_text(" ".join(drawn.choice(FAULTS) for _ in range(200)))
        killed = 0
        while True:
            process = _start(folder, store)
            if killed < given.kills:
                if _ends_within(process, drawn.uniform(0.5, 3.0)):
                    break
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
                continue
            faults.write_text("")
            if process.wait() != 0:
                out.print(f"BROKEN: it ended with status {process.returncode}", style="red")
                return 1
            break
        return _check(store, killed)


def _start(folder: Path, store: str) -> "subprocess.Popen[bytes]":
    agent = shlex.join([sys.executable, stand_in_agent.__file__, "--faults", str(folder / "faults")])
    environment = {**os.environ, "TIPBENCH_JUDGE_AGENT": agent, "TIPBENCH_JUDGE_TIMEOUT": "5"}
    command = (
        *(sys.executable, "-m", "tipbench", "judge", "--experiment", "tip-bench-agent", "--mlflow-url", store),
        *("--run", "agent", "--judge", "stand-in-2.1", "--concurrency", "4"),
    )
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _ends_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return process.poll() == 0


def _check(store: str, killed: int) -> int:
    broken = []
    with Bench("tip-bench-agent", mlflow_url=store) as bench:
        runs = batch_runs(bench.store, bench.experiment)
        if len(runs) != 1:
            broken.append(f"there are {len(runs)} batches instead of one")
        applied = applied_batch(bench.store, runs[0])
        texts = {item["slot"]: item["candidate"] for item in batch_file(bench.store, runs[0])["items"]}
        given = {verdict.slot.slot: dict(verdict.scores) for verdict in applied.verdicts} if applied else {}
        if given.keys() != texts.keys():
            broken.append(f"{len(given)} of {len(texts)} items have scores")
        wrong = [slot for slot, scores in given.items() if scores != faithful_scores(texts[slot], SCALES)]
        if wrong:
            broken.append(f"{len(wrong)} items have other scores than the judge gave")
        if bench.pending():
            broken.append(f"{bench.pending()} cells still wait")
        cells = len(bench.snapshot().cells)
    out.print(f"{cells} cells, {len(given)} items scored once, killed {killed} times.")
    for one in broken:
        out.print(f"BROKEN: {one}", style="red")
    return len(broken)


if __name__ == "__main__":
    sys.exit(main())
