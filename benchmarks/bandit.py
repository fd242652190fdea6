"""Choosing among 20 candidates of 12 features and learning from the reward: tipbench, and libraries for bandits.

    .venv/bin/python -m benchmarks.bandit             # installs the peers on demand: a minute and 750 MB
    .venv/bin/python -m benchmarks.bandit --rounds 21
    .venv/bin/python -m benchmarks.bandit --versions  # our own versions alone, without peers

All take the same decisions, each in a process and an environment of its own, in turns, on one core. A ratio is the
median of the rounds' ratios, so that a machine that is slow for a while is slow for both. Peers get features that are
made already. Ours says how likely every candidate was; of the peers only Vowpal Wabbit does. The Open Bandit Pipeline
(obp) and MABWiser know no features of candidates: they get one context of 12 for all 20, the candidates' mean, and keep
a regression for each place, which can't learn this task.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np

from benchmarks.parts.contenders.ours import Ready, prepared
from benchmarks.parts.contenders.turns import Task
from benchmarks.parts.environments import interpreter_with
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show, verdict
from benchmarks.parts.tip_requests import tip_request
from tipbench.recommender.features.interface import Features
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.egreedy import EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.records import Request

CANDIDATES = 20
DECISIONS = 1000
GROWTH = (5, 20, 50, 200)
MOST_TIMES_V2 = 1.3
STORED = ", stored"
ROUND_S = 0.25
VOWPAL_WABBIT = ("vowpal-wabbit-next==0.7.0", "numpy==2.4.6")
MABWISER = ("mabwiser==2.7.4", "numpy==2.4.6")
OBP = "obp==0.5.5"  # asks for Python 3.9 and packages of its time; these are the newest that it runs with
UNDER_OBP = (
    *("numpy==1.26.4", "pandas==2.2.3", "scikit-learn==1.5.2", "scipy==1.14.1", "matplotlib==3.9.4"),
    *("seaborn==0.13.2", "tqdm==4.67.1", "pyyaml==6.0.2"),
)
_ROOT = Path(__file__).parents[1]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Contender(NamedTuple):
    name: str
    module: str
    policy: str


OURS = Contender("tipbench ε-greedy", "ours", "egreedy")
OUR_UCB = Contender("tipbench LinUCB", "ours", "linucb")
SERVED = Contender("tipbench ε-greedy, features made of the request", "ours", "egreedy-from-request")
VW = Contender("Vowpal Wabbit ε-greedy", "vowpal_wabbit", "epsilon")
OBP_GREEDY = Contender("obp LinEpsilonGreedy", "open_bandit_pipeline", "egreedy")
OBP_UCB = Contender("obp LinUCB", "open_bandit_pipeline", "linucb")
CONTENDERS = (
    OURS,
    OUR_UCB,
    SERVED,
    VW,
    Contender("Vowpal Wabbit SquareCB", "vowpal_wabbit", "squarecb"),
    Contender("Vowpal Wabbit ε-greedy, from its text format", "vowpal_wabbit", "epsilon-from-text"),
    OBP_GREEDY,
    OBP_UCB,
    Contender("MABWiser LinGreedy, one arm, candidates as contexts", "mabwiser", "egreedy-one-arm"),
    Contender("MABWiser LinGreedy", "mabwiser", "egreedy"),
    Contender("MABWiser LinUCB", "mabwiser", "linucb"),
)


class Turn(NamedTuple):
    us: float
    reward: float


class Process:
    """A contender that waits for its turn."""

    def __init__(self, running: "subprocess.Popen[str]", name: str) -> None:
        self._running = running
        self._name = name
        self._count = 100

    def warm_up(self) -> None:
        for _ in range(2):
            self._count = max(10, int(ROUND_S * 1e6 / self.turn().us))

    def turn(self) -> Turn:
        assert self._running.stdin
        assert self._running.stdout
        self._running.stdin.write(f"{self._count}\n")
        self._running.stdin.flush()
        answer = self._running.stdout.readline()
        if not answer:
            raise SystemExit(f"{self._name} ended; what it said stands above")
        return Turn(**json.loads(answer))


@contextmanager
def started(contender: Contender, python: Path, folder: Path) -> Iterator[Process]:
    command = [str(python), "-m", f"benchmarks.parts.contenders.{contender.module}", contender.policy, str(folder)]
    search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    here = os.environ | _ONE_THREAD | {"PYTHONPATH": search, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(command, env=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield Process(running, contender.name)
        finally:
            running.kill()


def drawn_requests(candidates: int, number: int) -> list[Request]:
    drawn = random.Random(7)
    return [Request.model_validate(tip_request(drawn, "u1", f"e{event}", candidates)) for event in range(number)]


def write_task(folder: Path) -> float:
    """The same decisions for all; gives what choosing blindly would earn."""
    requests = drawn_requests(CANDIDATES, DECISIONS)
    (folder / "requests.jsonl").write_text("".join(f"{request.model_dump_json()}\n" for request in requests))
    chance = np.random.default_rng(7)
    features = np.array([V2.matrix(request) for request in requests])
    liked = chance.normal(0, 0.4, V2.dimensions)
    rewards = np.clip(features @ liked + chance.normal(0, 0.3, features.shape[:2]), -1, 1)
    Task(features, rewards.tolist(), folder / "requests.jsonl").write(folder)
    return float(rewards.mean())


def interpreters() -> dict[str, Path]:
    return {
        "ours": Path(sys.executable),
        "vowpal_wabbit": interpreter_with("vowpal-wabbit", VOWPAL_WABBIT),
        "open_bandit_pipeline": interpreter_with("obp", UNDER_OBP, alone=(OBP,)),
        "mabwiser": interpreter_with("mabwiser", MABWISER),
    }


def measured(folder: Path, rounds: int) -> dict[Contender, list[Turn]]:
    pythons = interpreters()
    turns: dict[Contender, list[Turn]] = {contender: [] for contender in CONTENDERS}
    with ExitStack() as stack:
        processes = {c: stack.enter_context(started(c, pythons[c.module], folder)) for c in CONTENDERS}
        for process in processes.values():
            process.warm_up()
        for _ in range(rounds):
            for contender, process in processes.items():
                turns[contender].append(process.turn())
    return turns


def ratio(turns: dict[Contender, list[Turn]], peer: Contender, ours: Contender) -> float:
    return median(theirs.us / our.us for theirs, our in zip(turns[peer], turns[ours], strict=True))


def show_beside(turns: dict[Contender, list[Turn]], blind: float) -> None:
    rows = []
    for contender, taken in turns.items():
        times = sorted(turn.us for turn in taken)
        rows.append(
            (
                contender.name,
                f"{median(times):.0f} ({times[0]:.0f}–{times[-1]:.0f})",
                f"{ratio(turns, contender, OURS):.1f}",
                f"{ratio(turns, contender, SERVED):.1f}",
                f"{median(turn.reward for turn in taken):.2f}",
            )
        )
    columns = ("policy", "µs", "times ours", "times ours with features", "mean reward")
    title = f"Choose and learn, {CANDIDATES} candidates of {V2.dimensions} features: median and range of the rounds"
    show(title, columns, rows)
    out.print(f"Choosing blindly earns {blind:.2f} on average.")
    out.print("obp runs without torch, which it imports for other policies: an empty module stands in for it.")


def show_growth() -> None:
    rows = [_growth(candidates, version) for version in (V1, V2) for candidates in GROWTH]
    columns = ("features", "candidates", "features made, µs", "choose and learn, µs", "both, µs")
    show("How ours grows, ε-greedy: the best of many short goes", columns, rows)


def _growth(candidates: int, version: Features) -> Sequence[str]:
    (request,) = drawn_requests(candidates, 1)
    prepared[request.event_id] = version.matrix(request)
    from_request, from_ready = EGreedy("", version), EGreedy("", Ready(*version))
    times = (
        _best_us(lambda: version.matrix(request)),
        _best_us(_choosing(from_ready, request)),
        _best_us(_choosing(from_request, request)),
    )
    return f"{version.version}, D={version.dimensions}", str(candidates), *(f"{time:.0f}" for time in times)


def versions_us() -> dict[str, float]:
    """By policy, the time to choose among 20 candidates and to learn, when each has its short goes in turn.

    The least of many: the machine may be busy. `stored` is with the state loaded and given back twice, as for a score
    and a reward.
    """
    requests = drawn_requests(CANDIDATES, 50)
    names = ("egreedy/v2", "egreedy/v3", "ucb/v3")
    goes = {name: _serving(POLICIES[name], requests) for name in names}
    goes |= {f"{name}{STORED}": _serving(POLICIES[name], requests, stored=True) for name in names}
    best = dict.fromkeys(goes, float("inf"))
    for _ in range(1000):
        for name, go in goes.items():
            best[name] = min(best[name], Timer(go).timeit(5) / 5 * 1e6)
    return best


def _serving(policy: Policy[Any], requests: list[Request], stored: bool = False) -> Callable[[], None]:
    """One decision an hour, as the service makes it: choose, show, learn."""
    state, generator, number = policy.new_state(), random.Random(7), count(1)

    def go() -> None:
        nonlocal state
        hour = next(number)
        request, at_ms = requests[hour % len(requests)], hour * 3_600_000
        choice = policy.choose(state, request, generator, at_ms)
        policy.show(state, request.candidates[choice.position].category, at_ms)
        state = policy.load_state(state.as_data()) if stored else state
        policy.learn(state, choice.seen, 0.5, at_ms)
        state = policy.load_state(state.as_data()) if stored else state

    return go


def show_versions() -> bool:
    """Version 3 does more than version 2, and may take 1.3 times its time."""
    best = versions_us()
    rows = [
        (name, f"{us:.0f}", f"{us / best['egreedy/v2' + (STORED if name.endswith(STORED) else '')]:.2f}")
        for name, us in best.items()
    ]
    show(f"Choose and learn, {CANDIDATES} candidates, from requests", ("policy", "µs", "times egreedy/v2"), rows)
    within = best["ucb/v3"] <= MOST_TIMES_V2 * best["egreedy/v2"]
    out.print(f"ucb/v3: at most {MOST_TIMES_V2} times egreedy/v2 {'kept' if within else 'BROKEN'}")
    return within


def _choosing(policy: EGreedy, request: Request) -> Callable[[], None]:
    state, generator = policy.new_state(), random.Random(7)
    return lambda: policy.learn(state, policy.choose(state, request, generator, 0).seen, 0.5, 0)


def _best_us(work: Callable[[], object], times: int = 30) -> float:
    return min(Timer(work).repeat(60, times)) / times * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, help="how often each has its turn")
    parser.add_argument("--versions", action="store_true", help="only our own versions beside each other")
    asked = parser.parse_args()
    if asked.versions:
        return 0 if show_versions() else 1
    rounds = asked.rounds
    with scratch_folders() as new_folder:
        folder = new_folder()
        blind = write_task(folder)
        turns = measured(folder, rounds)
    show_beside(turns, blind)
    show_growth()
    kept_promises = [
        show_versions(),
        verdict(f"{VW.name} / {OURS.name}", ratio(turns, VW, OURS), 5),
        verdict(f"{OBP_GREEDY.name} / {OURS.name}", ratio(turns, OBP_GREEDY, OURS), 2),
        verdict(f"{OBP_UCB.name} / {OUR_UCB.name}", ratio(turns, OBP_UCB, OUR_UCB), 2),
    ]
    return 0 if all(kept_promises) else 1


if __name__ == "__main__":
    sys.exit(main())
