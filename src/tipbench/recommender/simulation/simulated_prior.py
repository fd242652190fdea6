"""Priors fitted to simulated users, by the code that fits one to the decision log.

What a stored prior says about tips means nothing in a simulated world, whose tips are others. So a policy with a prior
is simulated with one that is fitted in that world, to users who are in no gate. Made worthless in one of three ways,
the same prior is a negative control, which a gate must not let pass: `permuted` is fitted to rewards in random order,
`turned` has its sign turned, and `shuffled` has each tip's reward assigned to another tip.
"""

import math
import random
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tipbench.core.identity import derived_seed
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.prior.fit import FEWEST_USERS, fit_rounds
from tipbench.recommender.prior.interface import FLAT, Prior, PriorRecord
from tipbench.recommender.records import Request
from tipbench.recommender.replay.rounds import Impressions, Round, Rounds, RowMask
from tipbench.recommender.simulation.rollout import Arm, InProcess, SimulatedPrior, roll_out
from tipbench.recommender.simulation.user_model import draw_life
from tipbench.recommender.simulation.world import World

_FIRST_SEED = 1100  # neither calibrated on nor used by gates
_STEPS, _OFFERED = 200, 10


def with_simulated_prior(arm: Arm, world: World) -> Arm:
    """Return the arm with the prior that it is simulated with."""
    if arm.simulated_prior is None:
        return arm
    assert isinstance(arm.policy, Ucb)
    return replace(arm, policy=arm.policy.with_prior(fit_simulated(arm.simulated_prior, world)))


def recipe(wanted: SimulatedPrior, world: World) -> dict[str, str | int]:
    """Return everything that a simulated prior depends on, besides the world itself."""
    lives = _seeds(world)
    size = {"first_seed": lives.start, "lives": len(lives), "steps": _STEPS, "offered": _OFFERED}
    return {"kind": wanted.kind} if wanted.kind == "none" else {**vars(wanted), **size}


def fit_simulated(wanted: SimulatedPrior, world: World) -> Prior:
    kind = wanted.kind
    if kind == "none":
        return FLAT
    fitted = _fitted(world.model_dump_json(), wanted.served_by, kind == "permuted").prior
    prior = replace(fitted, digest=f"simulated {kind}")
    if kind == "turned":
        return replace(prior, mean=-prior.mean)
    if kind == "shuffled":
        return replace(prior, tips=dict(zip(prior.tips, _shuffled(list(prior.tips.values())), strict=True)))
    return prior


def _seeds(world: World) -> range:
    """Return the seeds of the users of each persona, as many as a prior takes."""
    return range(_FIRST_SEED, _FIRST_SEED + math.ceil(FEWEST_USERS / len(world.personas)))


@lru_cache(maxsize=8)
def _fitted(world_json: str, served_by: str, permuted: bool) -> PriorRecord:
    rounds = _log(world_json, served_by)
    return PriorRecord.model_validate({"id": "", **fit_rounds(_permuted(rounds) if permuted else rounds)})


@lru_cache(maxsize=2)
def _log(world_json: str, served_by: str) -> Rounds:
    """Return what the decision log would hold, had a policy served users of this world."""
    world, policy = World.model_validate_json(world_json), POLICIES[served_by]
    rounds: list[Round] = []
    shown: list[tuple[int, int, str]] = []
    for user, (persona, seed) in enumerate(product(world.personas, _seeds(world))):
        server = _Logging(policy)
        draws = draw_life(world, persona, seed, _STEPS, min(_OFFERED, world.tips))
        roll_out(world, persona, seed, draws, Arm(policy.name, policy), server)
        for event, (request, at_ms) in server.shown.items():
            shown.append((user, at_ms, request.candidates[0].category))
            if event in server.rewards:
                rounds.append(Round(len(rounds), user, request, 0, 1.0, server.rewards[event], at_ms))
    users, times, categories = zip(*shown, strict=True)
    return _as_rounds(rounds, Impressions(np.array(users), np.array(times), categories))


class _Logging(InProcess):
    """Holds what was shown, each request with the chosen candidate alone, and the rewards that arrived."""

    def __init__(self, policy: Policy[Any]) -> None:
        super().__init__(policy)
        self.shown: dict[str, tuple[Request, int]] = {}
        self.rewards: dict[str, float] = {}

    def choose(self, request: Request, at_ms: int) -> int:
        position = super().choose(request, at_ms)
        chosen = request.model_copy(update={"candidates": (request.candidates[position],)})
        self.shown[request.event_id] = chosen, at_ms
        return position

    def learn(self, request: Request, reward: float) -> None:
        super().learn(request, reward)
        self.rewards[request.event_id] = reward


def _permuted(rounds: Rounds) -> Rounds:
    """Return the rounds with their rewards in random order, over all users."""
    found = list(rounds.read(np.ones(len(rounds), dtype=np.bool_)))
    rewards = _shuffled([one.reward for one in found])
    changed = [one._replace(reward=reward) for one, reward in zip(found, rewards, strict=True)]
    return _as_rounds(changed, rounds.impressions)


def _as_rounds(rounds: list[Round], impressions: Impressions) -> Rounds:
    def read(wanted: RowMask) -> Any:
        return (one for one in rounds if wanted[one.row])

    return Rounds(
        np.array([one.user for one in rounds]), np.array([one.at_ms for one in rounds]), read, impressions=impressions
    )


def _shuffled(values: list[float]) -> list[float]:
    random.Random(derived_seed("prior", len(values))).shuffle(values)
    return values
