"""Who serves simulated users best: ours, Vowpal Wabbit (VW), or the Open Bandit Pipeline (obp)? And how fast?

    .venv/bin/python -m benchmarks.rivals               # installs the peers on demand; then six minutes on one core
    .venv/bin/python -m benchmarks.rivals --seeds 30    # narrower intervals

In version 3 of the world, all serve the same lives, one life after the other. Everybody learns about one user from that
user alone, except those who begin with what 100 other users taught them: ours with a prior, and VW with a model that
has served these users before. VW gets the features that ours have, the category and the tip. obp knows no features of
candidates: it has an action for each category and a context of the moment. Times are of choosing and learning within
the contender's own process, with VW's examples made from numbers and ours from requests. Promised: `ucb/v3` with a
prior earns more than each peer, surely at 95 %, one by one. The exit status is the number of peers for which that does
not hold.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bandit import OBP, UNDER_OBP, VOWPAL_WABBIT
from benchmarks.parts.environments import interpreter_with
from benchmarks.parts.oracles import EVERYTHING, ORACLES, RANDOM, Oracles
from benchmarks.parts.table import out, show
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v3 import DENSE, V3, Shown, fill_in
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.records import Request
from tipbench.recommender.simulation.popularity import MostPopular
from tipbench.recommender.simulation.rollout import Arm, InProcess, Server, SimulatedPrior, roll_out
from tipbench.recommender.simulation.simulated_prior import fit_simulated
from tipbench.recommender.simulation.user_model import draw_life
from tipbench.recommender.simulation.world import World
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.statistics.drift import t_quantile_at
from tipbench.statistics.paired import difference

FIRST_SEED = 2_000
TAUGHT_BY = range(1_100, 1_110)  # seeds of the users that priors are fitted to
STEPS, OFFERED = 200, 10
EARLY = 30
BEST = "ucb/v3 with a prior"
VW_POLICIES = {"epsilon": "ε-greedy", "squarecb": "SquareCB", "bag": "bagging of 5"}
OBP_POLICIES = ("LinEpsilonGreedy", "LinUCB", "LinTS", "LogisticEpsilonGreedy", "LogisticUCB", "LogisticTS")
_ROOT = Path(__file__).parents[1]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Timed(InProcess):
    """Ours, with the time that choosing and learning take."""

    us = 0.0

    def choose(self, request: Request, at_ms: int) -> int:
        started = time.perf_counter()
        position = super().choose(request, at_ms)
        self.us += (time.perf_counter() - started) * 1e6
        return position

    def learn(self, request: Request, reward: float) -> None:
        started = time.perf_counter()
        super().learn(request, reward)
        self.us += (time.perf_counter() - started) * 1e6


class Peer:
    """A peer in its own process, asked about one user."""

    def __init__(self, running: "subprocess.Popen[str]", world: World) -> None:
        self._running = running
        self._categories = {name: number for number, name in enumerate(world.categories)}
        self.new_user()

    def new_user(self) -> None:
        self._shown = Shown()
        self.us = 0.0
        self._ask("begin")
        self.us = 0.0

    def choose(self, request: Request, at_ms: int) -> int:
        rows = V3.rows(request)
        fill_in(rows, request, self._shown, {}, at_ms)
        focus = [float(request.context.focus_category == name) for name in self._categories]
        offered = (
            [row[:DENSE] for row in rows],
            [self._categories[one.category] for one in request.candidates],
            [int(one.id.removeprefix("tip-")) for one in request.candidates],
            [1.0, *rows[0][1:3], *focus],
        )
        position = self._ask("choose", request.event_id, offered)
        self._shown.add(request.candidates[position].category, at_ms)
        return position

    def learn(self, request: Request, reward: float) -> None:
        self._ask("learn", request.event_id, reward)

    def keep(self) -> None:
        self._ask("keep")

    def _ask(self, *words: Any) -> int:
        assert self._running.stdin
        assert self._running.stdout
        self._running.stdin.write(json.dumps(words) + "\n")
        self._running.stdin.flush()
        line = self._running.stdout.readline()
        if not line:
            raise SystemExit("a peer ended; what it said stands above")
        position, us = json.loads(line)
        self.us += us
        return int(position)


@contextmanager
def peer(python: Path, module: str, policy: str, world: World) -> Iterator[Peer]:
    command = [str(python), "-m", f"benchmarks.parts.contenders.{module}", policy]
    here = os.environ | _ONE_THREAD | {"PYTHONPATH": str(_ROOT), "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(command, env=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield Peer(running, world)
        finally:
            running.kill()


class Earned(NamedTuple):
    rewards: Floats  # by persona, seed and step
    us: float  # a decision


class Contest:
    def __init__(self, world: World, seeds: range) -> None:
        self.world, self.seeds = world, seeds

    def ours(self, name: str, policy: Policy[Any]) -> Earned:
        with out.status(name):
            return self._served(lambda: Timed(policy))

    def vowpal_wabbit(self, exploring: str, taught: bool) -> Earned:
        python = interpreter_with("vowpal-wabbit", VOWPAL_WABBIT)
        with (
            peer(python, "users_of_vw", exploring, self.world) as one,
            out.status(f"Vowpal Wabbit {exploring}"),
        ):
            if taught:
                for persona in range(len(self.world.personas)):
                    for seed in TAUGHT_BY:
                        self._live(persona, seed, one)
                one.keep()
            return self._served_by_peer(one)

    def open_bandit_pipeline(self, policy: str) -> Earned:
        python = interpreter_with("obp", UNDER_OBP, alone=(OBP,))
        with peer(python, "users_of_obp", policy, self.world) as one, out.status(f"obp {policy}"):
            return self._served_by_peer(one)

    def _served_by_peer(self, one: Peer) -> Earned:
        def new_user() -> Peer:
            one.new_user()
            return one

        return self._served(new_user)

    def _served(self, new_user: Any) -> Earned:
        personas, us = range(len(self.world.personas)), 0.0
        rewards = np.zeros((len(personas), len(self.seeds), STEPS))
        for persona in personas:
            for number, seed in enumerate(self.seeds):
                server = new_user()
                rewards[persona, number] = self._live(persona, seed, server)
                us += server.us
        return Earned(rewards, us / rewards.size)

    def _live(self, number: int, seed: int, server: Server) -> Floats:
        persona = self.world.personas[number]
        draws = draw_life(self.world, persona, seed, STEPS, OFFERED)
        return roll_out(self.world, persona, seed, draws, Arm("", POLICIES["egreedy"]), server).rewards

    def ends(self) -> tuple[float, float]:
        """Return what random choices earn, and an oracle."""
        oracles = Oracles(self.world, STEPS, OFFERED)
        units = [(persona, seed) for persona in range(len(self.world.personas)) for seed in self.seeds]
        means = dict(zip(ORACLES, np.mean([oracles(unit) for unit in units], axis=0).tolist(), strict=True))
        return means[RANDOM], means[EVERYTHING]


def measured(contest: Contest) -> dict[str, Earned]:
    ucb = POLICIES["ucb/v3"]
    assert isinstance(ucb, Ucb)
    prior = fit_simulated(SimulatedPrior("fitted", "ucb/v3"), contest.world)
    found = {
        BEST: contest.ours(BEST, ucb.with_prior(prior)),
        "ucb/v3": contest.ours("ucb/v3", ucb),
        "egreedy/v2": contest.ours("egreedy/v2", POLICIES["egreedy/v2"]),
        "most-popular": contest.ours("most-popular", MostPopular(world=contest.world)),
    }
    for exploring, name in VW_POLICIES.items():
        found[f"VW {name}, taught by 100 users"] = contest.vowpal_wabbit(exploring, taught=True)
        found[f"VW {name}"] = contest.vowpal_wabbit(exploring, taught=False)
    for policy in OBP_POLICIES:
        found[f"obp {policy}"] = contest.open_bandit_pipeline(policy)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="lives of each persona, at least 10")
    asked = parser.parse_args()
    contest = Contest(built_in_world(3), range(FIRST_SEED, FIRST_SEED + asked.seeds))
    found = measured(contest)
    blind, oracle = contest.ends()
    best = found[BEST].rewards
    rows, not_beaten = [], []
    for name, (rewards, us) in found.items():
        ahead = difference((best - rewards).mean(axis=(0, 2)))
        margin = t_quantile_at(0.975, ahead.degrees) * ahead.error
        if name.startswith(("VW", "obp")) and not ahead.lower_bound(0.95) > 0:
            not_beaten.append(name)
        share = (float(rewards.mean()) - blind) / (oracle - blind)
        early = f"{rewards[:, :, :EARLY].mean():.3f}"
        behind = "" if name == BEST else f"{ahead.mean:+.3f} ± {margin:.3f}"
        rows.append((name, f"{rewards.mean():.3f}", early, behind, f"{share:.0%}", f"{us:.0f}"))
    columns = ("policy", "reward", f"decisions 1–{EARLY}", f"{BEST} is ahead by", "share of the way", "µs a decision")
    lives = asked.seeds * len(contest.world.personas)
    show(f"{lives} lives of {STEPS} decisions among {OFFERED} tips", columns, rows)
    out.print(f"Random choices earn {blind:.3f}, an oracle {oracle:.3f}.")
    out.print(f"Peers that {BEST} does not surely beat: {', '.join(not_beaten) or 'none'}")
    return len(not_beaten)


if __name__ == "__main__":
    sys.exit(main())
