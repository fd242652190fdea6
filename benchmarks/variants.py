"""How much does each part of version 3 earn? Simulated users are served by it, with a prior that never saw their kind.

    .venv/bin/python -m benchmarks.variants                  # 30 lives of each persona: ten minutes on one core
    .venv/bin/python -m benchmarks.variants --seeds 6        # quicker, and rougher

A prior is fitted for each persona to users of all *other* personas (leave one persona out), who were served by `ucb/v3`
without a prior. *Share* is the share of the way from choosing blindly to an oracle that knows each user's expected
rewards. Promised of `ucb/v3` with that prior: a gain of at least 0.045 a decision over `egreedy/v2` and over
`category-mean`, 75 % of the way, 60 % in decisions 11 to 30, and no persona that loses more than 0.02 on average to
`egreedy/v2`. The exit status is the number of broken promises.

Tips of different lives share ids here although they are different tips, so the priors have no rewards of tips. In a
world of one pool, whose users are drawn, `prior_users` is the place to take users from it.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.parts.table import out, show
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.egreedy import Decay, EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.prior.em import UserSums, fit_users
from tipbench.recommender.prior.interface import Prior
from tipbench.recommender.records import Request
from tipbench.recommender.simulation.process_map import process_map
from tipbench.recommender.simulation.rollout import Arm, InProcess, roll_out
from tipbench.recommender.simulation.user_model import Life, draw_life, expected_reward
from tipbench.recommender.simulation.world import Persona, World
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.statistics.drift import t_quantile_at
from tipbench.statistics.paired import difference

FIRST_SEED = 2_000
FIRST_PRIOR_SEED = 500
OFFERED = 10
STEPS = 200
PARTS = ((0, 10), (10, 30), (30, 100), (100, 200))
BLIND, ORACLE, BASE, MEAN, WITH_PRIOR = "blindly", "oracle", "egreedy/v2", "category-mean", "ucb/v3 with a prior"
LEAST_GAIN, LEAST_SHARE, LEAST_EARLY_SHARE, WORST_LOSS = 0.045, 0.75, 0.6, -0.02


class _Remembering(InProcess):
    """Serves a user, and holds what a prior is fitted to."""

    def __init__(self, policy: Policy[Any]) -> None:
        super().__init__(policy)
        self.user = UserSums(policy.new_state())

    def choose(self, request: Request, at_ms: int) -> int:
        position = super().choose(request, at_ms)
        self.user.sums.shown = self._state.shown
        return position

    def learn(self, request: Request, reward: float) -> None:
        seen, at_ms = self._pending[request.event_id]
        self.user.learn(seen, reward, at_ms)
        super().learn(request, reward)


class _Unit(NamedTuple):
    persona: int
    seed: int


def prior_users(world: World, unit: _Unit) -> UserSums:
    """One user for the priors, served without one."""
    persona, policy = world.personas[unit.persona], POLICIES["ucb/v3"]
    server = _Remembering(policy)
    draws = draw_life(world, persona, unit.seed, STEPS, OFFERED)
    roll_out(world, persona, unit.seed, draws, Arm(policy.name, policy), server)
    return server.user


def prior_of_users(users: list[UserSums]) -> Prior:
    return Prior("simulated", *fit_users(users), tips={})


def contenders(prior: Prior) -> list[Policy[Any]]:
    ucb = POLICIES["ucb/v3"]
    assert isinstance(ucb, Ucb)
    return [
        EGreedy(BLIND, V1, decay=Decay(first=1.0, floor=1.0)),
        POLICIES["egreedy"],
        POLICIES[BASE],
        POLICIES[MEAN],
        POLICIES["egreedy/v3"],
        ucb,
        replace(ucb, name="ucb/v3 with a prior, ε = 0.1", prior=prior, decay=Decay(first=0.1, floor=0.1)),
        replace(ucb, name="ucb/v3 with a prior, 0.25 sd", prior=prior, sds=0.25),
        replace(ucb, name=WITH_PRIOR, prior=prior),
    ]


class _KnownLife(Life):
    """Serves itself with what is best for it."""

    def served(self, persona: Persona) -> Floats:
        rewards = []
        for step, now in enumerate(self._hours):
            if persona.fatigue:
                self._tire(step, now)
            expected = expected_reward(self._lasting[step] + self._varying[step], persona.moods)
            rewards.append(self.show(step, int(expected.argmax())).reward)
        return np.array(rewards)


def served(world: World, priors: list[Prior], unit: _Unit) -> dict[str, Floats]:
    """By policy: the rewards of one life."""
    persona = world.personas[unit.persona]
    draws = draw_life(world, persona, unit.seed, STEPS, OFFERED)
    found = {ORACLE: _KnownLife(world, draws).served(persona)}
    for policy in contenders(priors[unit.persona]):
        arm = Arm(policy.name, policy)
        found[policy.name] = roll_out(world, persona, unit.seed, draws, arm, InProcess(policy)).rewards
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--prior-users", type=int, default=11, help="of each persona")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    world = built_in_world(2)
    rewards = measured(world, asked.seeds, asked.prior_users, asked.workers)
    show(
        f"{asked.seeds} lives of {len(world.personas)} personas, {STEPS} decisions each; shares by decisions",
        ("policy", "reward", f"gain over {BASE}", "worst persona", "share", *(f"{a + 1}–{b}" for a, b in PARTS)),
        [_row(rewards, name, world) for name in rewards],
    )
    return _broken(rewards, world)


def measured(world: World, seeds: int, users: int, workers: int) -> dict[str, Floats]:
    """By policy: rewards by persona, seed and step."""
    personas = range(len(world.personas))
    units = [_Unit(persona, FIRST_PRIOR_SEED + seed) for persona in personas for seed in range(users)]
    with out.status("users for the priors"):
        found = list(process_map(partial(prior_users, world), units, workers))
    priors = [prior_of_users([user for unit, user in found if unit.persona != persona]) for persona in personas]
    units = [_Unit(persona, FIRST_SEED + seed) for persona in personas for seed in range(seeds)]
    rewards: dict[str, Floats] = {}
    with out.status(f"{len(units)} lives"):
        for unit, by_policy in process_map(partial(served, world, priors), units, workers):
            for name, earned in by_policy.items():
                of_policy = rewards.setdefault(name, np.zeros((len(world.personas), seeds, STEPS)))
                of_policy[unit.persona, unit.seed - FIRST_SEED] = earned
    return rewards


def share(rewards: dict[str, Floats], name: str, part: slice = slice(None)) -> float:
    blind, oracle, own = (float(rewards[one][:, :, part].mean()) for one in (BLIND, ORACLE, name))
    return (own - blind) / (oracle - blind)


def _gains(rewards: dict[str, Floats], name: str, over: str) -> Floats:
    """By persona and seed."""
    gains: Floats = (rewards[name] - rewards[over]).mean(axis=2)
    return gains


def _row(rewards: dict[str, Floats], name: str, world: World) -> tuple[str, ...]:
    gains = _gains(rewards, name, BASE)
    gain = difference(gains.mean(axis=0))
    margin = t_quantile_at(0.975, gain.degrees) * gain.error
    worst = int(gains.mean(axis=1).argmin())
    shares = (f"{share(rewards, name, slice(*part)):.1%}" for part in PARTS)
    named = f"{world.personas[worst].name} {gains[worst].mean():+.3f}"
    return (
        *(name, f"{rewards[name].mean():.4f}", f"{gain.mean:+.4f} ± {margin:.4f}", named),
        *(f"{share(rewards, name):.1%}", *shares),
    )


def _broken(rewards: dict[str, Floats], world: World) -> int:
    by_persona = _gains(rewards, WITH_PRIOR, BASE).mean(axis=1)
    worst = world.personas[int(by_persona.argmin())].name
    promises = (
        *((f"gain over {over}", float(_gains(rewards, WITH_PRIOR, over).mean()), LEAST_GAIN) for over in (BASE, MEAN)),
        ("share of the way", share(rewards, WITH_PRIOR), LEAST_SHARE),
        ("share in decisions 11 to 30", share(rewards, WITH_PRIOR, slice(*PARTS[1])), LEAST_EARLY_SHARE),
        (f"gain of the worst persona, {worst}", float(by_persona.min()), WORST_LOSS),
    )
    for name, value, least in promises:
        out.print(f"{name}: {value:+.4f} (promised: at least {least:+.4f}){'' if value >= least else ' BROKEN'}")
    return sum(value < least for _, value, least in promises)


if __name__ == "__main__":
    sys.exit(main())
