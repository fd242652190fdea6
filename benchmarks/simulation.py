"""Simulated decisions a second: tipbench on one core and on two, beside the Open Bandit Pipeline's simulator.

    .venv/bin/python -m benchmarks.simulation                # installs obp on demand: a minute and 400 MB
    .venv/bin/python -m benchmarks.simulation --rounds 40

All live lives of 300 decisions among 10 actions, each in a process and an environment of its own, in turns, on one
core; a ratio is the median of the rounds' ratios. Ours makes a world, requests, 12 features of each candidate,
profiles, rewards and regrets on the way, and says how likely every candidate was. obp takes one context of 12 for all
actions; with its own synthetic world it makes data and rewards on the way as well, and otherwise gets them ready made.
Then a whole simulation with its processes, on one core and on two.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.bandit import OBP, UNDER_OBP
from benchmarks.parts.contenders.lives import ACTIONS, STEPS
from benchmarks.parts.environments import interpreter_with
from benchmarks.parts.table import out, show, verdict
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest, simulate_in_subprocess
from tipbench.server.jobs.simulation_asked import built_in_world

WARM_UP = 3
_ROOT = Path(__file__).parents[1]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Simulator(NamedTuple):
    name: str
    module: str
    policy: str


OURS = Simulator("tipbench, ε-greedy v2 (12 features)", "our_lives", "egreedy/v2")
OWN_WORLD = Simulator("obp, LinEpsilonGreedy, its synthetic world", "lives_in_obp", "own-world")
SIMULATORS = (
    OURS,
    Simulator("tipbench, ε-greedy v1 (7 features)", "our_lives", "egreedy"),
    Simulator("tipbench, LinUCB (7 features)", "our_lives", "linucb"),
    OWN_WORLD,
    Simulator("obp, the same, all data ready made", "lives_in_obp", "always"),
    Simulator("obp, the same, learns where logged (1 of 10)", "lives_in_obp", "logged"),
)


@contextmanager
def started(simulator: Simulator, python: Path) -> Iterator["subprocess.Popen[str]"]:
    search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    here = os.environ | _ONE_THREAD | {"PYTHONPATH": search, "PYTHONWARNINGS": "ignore"}
    command = [str(python), "-m", f"benchmarks.parts.contenders.{simulator.module}", simulator.policy]
    with subprocess.Popen(command, env=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def one_life_s(running: "subprocess.Popen[str]") -> float:
    assert running.stdin
    assert running.stdout
    running.stdin.write("\n")
    running.stdin.flush()
    answer = running.stdout.readline()
    if not answer:
        raise SystemExit("a simulator ended; what it said stands above")
    return float(json.loads(answer)["seconds"])


def measured(rounds: int) -> dict[Simulator, list[float]]:
    pythons = {"our_lives": Path(sys.executable), "lives_in_obp": interpreter_with("obp", UNDER_OBP, alone=(OBP,))}
    taken: dict[Simulator, list[float]] = {simulator: [] for simulator in SIMULATORS}
    with ExitStack() as stack:
        running = {one: stack.enter_context(started(one, pythons[one.module])) for one in SIMULATORS}
        for number in range(WARM_UP + rounds):
            for simulator, process in running.items():
                seconds = one_life_s(process)
                if number >= WARM_UP:
                    taken[simulator].append(seconds)
    return taken


def ratio(taken: dict[Simulator, list[float]], peer: Simulator, ours: Simulator) -> float:
    return median(theirs / our for theirs, our in zip(taken[peer], taken[ours], strict=True))


def show_beside(taken: dict[Simulator, list[float]]) -> None:
    rows = [
        (
            simulator.name,
            f"{STEPS / median(seconds):,.0f}",
            f"{median(seconds) / STEPS * 1e6:.0f} ({min(seconds) / STEPS * 1e6:.0f}–{max(seconds) / STEPS * 1e6:.0f})",
            f"{ratio(taken, simulator, OURS):.1f}",
        )
        for simulator, seconds in taken.items()
    ]
    columns = ("simulator", "decisions/s", "µs a decision", "times ours")
    show(f"Lives of {STEPS} decisions among {ACTIONS} actions, one core", columns, rows)


def show_cores(seeds: int) -> None:
    request = SimulationRequest(world=built_in_world(2), arms=("egreedy", "egreedy/v2"), seeds=seeds)
    decisions = request.plan().decisions
    rates = {}
    for workers in (1, 2):
        begun = time.perf_counter()
        simulate_in_subprocess(request, workers, 3600, lambda *_: None)
        rates[workers] = decisions / (time.perf_counter() - begun)
    rows = [(str(workers), f"{rate:,.0f}", f"{rate / rates[1]:.2f}") for workers, rate in rates.items()]
    show(f"A whole simulation of {decisions:,} decisions, its start among it", ("cores", "decisions/s", "×"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="how many lives each lives")
    parser.add_argument("--seeds", type=int, default=15, help="of the whole simulation")
    given = parser.parse_args()
    taken = measured(given.rounds)
    show_beside(taken)
    show_cores(given.seeds)
    out.print("obp runs without torch, which it imports for other policies: an empty module stands in for it.")
    return 0 if verdict(f"{OWN_WORLD.name} / {OURS.name}", ratio(taken, OWN_WORLD, OURS), 1) else 1


if __name__ == "__main__":
    sys.exit(main())
