"""How much does each part of version 3 earn? Simulated users are served by it, with a prior that never saw their kind.

    .venv/bin/python -m benchmarks.variants                  # 30 lives of each persona: half an hour on one core
    .venv/bin/python -m benchmarks.variants --worlds 2       # one world of three
    .venv/bin/python -m benchmarks.variants --seeds 10       # quicker, and rougher

In version 2 of the world, in the same world with version 3's spread of users around their persona (`drawn`), and in
version 3. A prior is fitted for each persona to users of all *other* personas (leave one persona out), who were served
by `ucb/v3` without a prior. In version 2 tips of different lives share ids although they are different tips, so there
the priors have no rewards of tips. *Share* is the share of the way from choosing blindly to an oracle that knows each
user's expected rewards; intervals are 95 %, over seeds.

Promised of `ucb/v3` with that prior in version 2: a gain of at least 0.045 a decision over `egreedy/v2` and over
`category-mean`, 75 % of the way, 60 % in decisions 11 to 30, and no persona that loses more than 0.02 on average to
either; with drawn users, 70 % of the way. The exit status is the number of broken promises. Version 3 has no promises:
the gate is held there.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.parts.oracles import EVERYTHING, ORACLES, OpenLife
from benchmarks.parts.table import out, show
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.egreedy import Decay, EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.prior.interface import Prior
from tipbench.recommender.simulation.popularity import MostPopular
from tipbench.recommender.simulation.process_map import process_map
from tipbench.recommender.simulation.rollout import Arm, InProcess, SimulatedPrior, roll_out
from tipbench.recommender.simulation.simulated_prior import fit_simulated
from tipbench.recommender.simulation.user_model import draw_life
from tipbench.recommender.simulation.world import World
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.statistics.drift import t_quantile_at
from tipbench.statistics.paired import difference

FIRST_SEED = 2_000
OFFERED = 10
STEPS = 200
PARTS = ((0, 10), (10, 30), (30, 100), (100, 200))
BLIND, ORACLE, BASE, MEAN, WITH_PRIOR = "blindly", "oracle", "egreedy/v2", "category-mean", "ucb/v3 with a prior"
LEAST_GAIN, LEAST_SHARE, LEAST_EARLY_SHARE, WORST_LOSS, LEAST_DRAWN_SHARE = 0.045, 0.75, 0.6, -0.02, 0.7


def drawn_world() -> World:
    """Version 2's world with users who are drawn around their persona as in version 3, and nothing else of it."""
    spreads = {persona.name: persona.spread for persona in built_in_world(3).personas}
    world = built_in_world(2)
    personas = tuple(one.model_copy(update={"spread": spreads[one.name]}) for one in world.personas)
    return world.model_copy(update={"simulator": 3, "personas": personas})


WORLDS: Mapping[str, Callable[[], World]] = {
    "2": lambda: built_in_world(2),
    "drawn": drawn_world,
    "3": lambda: built_in_world(3),
}


class _Unit(NamedTuple):
    persona: int
    seed: int


def prior_without(world: World, persona: int) -> Prior:
    """Return a prior of the users of all other personas."""
    others = [one.name for number, one in enumerate(world.personas) if number != persona]
    prior = fit_simulated(SimulatedPrior("fitted", "ucb/v3"), world.only(others))
    return prior if world.simulator == 3 else replace(prior, tips={})


def contenders(world: World, prior: Prior) -> list[Policy[Any]]:
    ucb = POLICIES["ucb/v3"]
    assert isinstance(ucb, Ucb)
    of_tips: list[Policy[Any]] = [
        MostPopular(world=world),
        replace(ucb, name=f"{WITH_PRIOR}, but of no tips", prior=replace(prior, digest="no tips", tips={})),
    ]
    return [
        EGreedy(BLIND, V1, decay=Decay(first=1.0, floor=1.0)),
        POLICIES["egreedy"],
        POLICIES[BASE],
        POLICIES[MEAN],
        POLICIES["egreedy/v3"],
        ucb,
        *(of_tips if world.pool.quality else []),
        replace(ucb, name="ucb/v3 with a prior, ε = 0.1", prior=prior, decay=Decay(first=0.1, floor=0.1)),
        replace(ucb, name="ucb/v3 with a prior, 0.25 sd", prior=prior, sds=0.25),
        replace(ucb, name=WITH_PRIOR, prior=prior),
    ]


def served(world: World, priors: list[Prior], unit: _Unit) -> dict[str, Floats]:
    """By policy: the rewards of one life."""
    persona = world.personas[unit.persona]
    draws = draw_life(world, persona, unit.seed, STEPS, OFFERED)
    life = OpenLife(world, draws)
    best = (int(life.utilities(step, ORACLES[EVERYTHING]).argmax()) for step in range(STEPS))
    found = {ORACLE: np.array([life.show(step, position).reward for step, position in enumerate(best)])}
    for policy in contenders(world, priors[unit.persona]):
        arm = Arm(policy.name, policy)
        found[policy.name] = roll_out(world, persona, unit.seed, draws, arm, InProcess(policy)).rewards
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--worlds", default=",".join(WORLDS), help="comma-separated")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    broken = 0
    for name in asked.worlds.split(","):
        world = WORLDS[name]()
        rewards = measured(world, asked.seeds, asked.workers)
        show_policies(f"World {name}", rewards, world)
        show_personas(f"World {name}", rewards, world)
        broken += _broken(name, rewards, world)
    return broken


def measured(world: World, seeds: int, workers: int) -> dict[str, Floats]:
    """By policy: rewards by persona, seed and step."""
    personas = range(len(world.personas))
    with out.status("priors"):
        found = dict(process_map(partial(prior_without, world), personas, workers))
    priors = [found[persona] for persona in personas]
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


def gains(rewards: dict[str, Floats], name: str, over: str) -> Floats:
    """By persona and seed."""
    found: Floats = (rewards[name] - rewards[over]).mean(axis=2)
    return found


def show_policies(title: str, rewards: dict[str, Floats], world: World) -> None:
    seeds = rewards[BASE].shape[1]
    show(
        f"{title}: {seeds} lives of {len(world.personas)} personas, {STEPS} decisions each; shares by decisions",
        ("policy", "reward", f"gain over {BASE}", "worst persona", "share", *(f"{a + 1}–{b}" for a, b in PARTS)),
        [_row(rewards, name, world) for name in rewards],
    )


def _row(rewards: dict[str, Floats], name: str, world: World) -> tuple[str, ...]:
    over_base = gains(rewards, name, BASE)
    worst = int(over_base.mean(axis=1).argmin())
    shares = (f"{share(rewards, name, slice(*part)):.1%}" for part in PARTS)
    named = f"{world.personas[worst].name} {over_base[worst].mean():+.3f}"
    return (
        *(name, f"{rewards[name].mean():.4f}", _with_margin(over_base.mean(axis=0)), named),
        *(f"{share(rewards, name):.1%}", *shares),
    )


def show_personas(title: str, rewards: dict[str, Floats], world: World) -> None:
    rivals = [name for name in (BASE, MEAN, "most-popular", "ucb/v3") if name in rewards]
    rows = []
    for number, persona in enumerate(world.personas):
        of_persona = {name: found[number : number + 1] for name, found in rewards.items()}
        over = (_with_margin(gains(rewards, WITH_PRIOR, rival)[number]) for rival in rivals)
        known = "–" if persona.control else f"{share(of_persona, WITH_PRIOR):.0%}"
        rows.append((persona.name, *over, known))
    show(
        f"{title}: what {WITH_PRIOR} gains, by persona", ("persona", *(f"over {one}" for one in rivals), "share"), rows
    )


def _with_margin(by_seed: Floats) -> str:
    gain = difference(by_seed)
    return f"{gain.mean:+.4f} ± {t_quantile_at(0.975, gain.degrees) * gain.error:.4f}"


def _broken(world_name: str, rewards: dict[str, Floats], world: World) -> int:
    promises = []
    if world_name == "2":
        for over in (BASE, MEAN):
            by_persona = gains(rewards, WITH_PRIOR, over).mean(axis=1)
            worst = world.personas[int(by_persona.argmin())].name
            promises += [
                (f"gain over {over}", float(by_persona.mean()), LEAST_GAIN),
                (f"gain over {over} of the worst persona, {worst}", float(by_persona.min()), WORST_LOSS),
            ]
        promises.append(("share of the way", share(rewards, WITH_PRIOR), LEAST_SHARE))
        early = share(rewards, WITH_PRIOR, slice(*PARTS[1]))
        promises.append(("share in decisions 11 to 30", early, LEAST_EARLY_SHARE))
    elif world_name == "drawn":
        promises.append(("share of the way with drawn users", share(rewards, WITH_PRIOR), LEAST_DRAWN_SHARE))
    for name, value, least in promises:
        out.print(f"{name}: {value:+.4f} (promised: at least {least:+.4f}){'' if value >= least else ' BROKEN'}")
    return sum(value < least for _, value, least in promises)


if __name__ == "__main__":
    sys.exit(main())
