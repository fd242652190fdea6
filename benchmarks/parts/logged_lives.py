"""Simulated users as a decision log would hold them, and what no log knows: what would have come of every choice.

A user is of a persona drawn by chance, so that users are independent draws from one population.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.interface import Choice, Policy, State
from tipbench.recommender.records import Request, Reward
from tipbench.recommender.replay.rounds import Impressions, Round, Rounds, RowMask
from tipbench.recommender.simulation.rollout import Arm, Server, Trajectory, roll_out
from tipbench.recommender.simulation.user_model import Draws, Life, draw_life
from tipbench.recommender.simulation.world import Persona, World

OFFERED = 10
_START_MS = 1_800_000_000_000


@dataclass(frozen=True)
class User:
    world: World
    persona: Persona
    seed: int
    draws: Draws

    @property
    def steps(self) -> int:
        return len(self.draws.luck)

    def served_by(self, server: Server, policy: Policy[Any]) -> Trajectory:
        return roll_out(self.world, self.persona, self.seed, self.draws, Arm(policy.name, policy), server)


def drawn_users(world: World, count: int, steps: int, seed: int) -> list[User]:
    chance = np.random.Generator(np.random.PCG64([9, seed]))
    personas = [world.personas[place] for place in chance.integers(0, len(world.personas), count)]
    seeds = range(seed * count, (seed + 1) * count)
    return [
        User(world, persona, number, draw_life(world, persona, number, steps, OFFERED))
        for number, persona in zip(seeds, personas, strict=True)
    ]


class Logging:
    """The policy serves and learns, and everything is kept."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy
        self._state = policy.new_state()
        self.decisions: list[tuple[Request, Choice, int]] = []

    def choose(self, request: Request, at_ms: int) -> int:
        choice = chosen_by(self._policy, self._state, request, at_ms)
        self._policy.show(self._state, request.candidates[choice.position].category, at_ms)
        self.decisions.append((request, choice, at_ms))
        return choice.position

    def learn(self, request: Request, reward: float) -> None:
        [(choice, at_ms)] = [found[1:] for found in reversed(self.decisions) if found[0] is request]
        self._policy.learn(self._state, choice.seen, reward, at_ms)


class FrozenAfter:
    """What was logged is shown again up to a step, and from there on a policy chooses that learns nothing."""

    def __init__(self, policy: Policy[Any], state: State, before: list[int]) -> None:
        self._policy = policy
        self._state = state
        self._before = iter(before)

    def choose(self, request: Request, at_ms: int) -> int:
        position = next(self._before, None)
        if position is None:
            position = chosen_by(self._policy, self._state, request, at_ms).position
            self._policy.show(self._state, request.candidates[position].category, at_ms)
        return position

    def learn(self, request: Request, reward: float) -> None:
        """Nothing."""


def chosen_by(policy: Policy[Any], state: State, request: Request, at_ms: int) -> Choice:
    return policy.choose(state, request, EventRng(policy.name, request.user_id, request.event_id), at_ms)


@dataclass(frozen=True)
class LoggedLives:
    """By round and candidate: how likely it was, and what would have come of it, where the log was."""

    rounds: Rounds
    propensities: Floats
    rewards: Floats
    chosen: list[list[int]]  # by user and step


def logged(users: list[User], policy: Policy[Any]) -> LoggedLives:
    rounds: list[Round] = []
    propensities, rewards, chosen = [], [], []
    for number, user in enumerate(users):
        server = Logging(policy)
        trajectory = user.served_by(server, policy)
        for (request, choice, at_ms), reward in zip(server.decisions, trajectory.rewards.tolist(), strict=True):
            rounds.append(Round(len(rounds), number, request, choice.position, choice.propensity, reward, at_ms))
            propensities.append(choice.propensities)
        chosen.append(trajectory.chosen.tolist())
        rewards.append(_OpenLife(user.world, user.draws).rewards(chosen[-1]))

    def read(wanted: RowMask) -> Iterator[Round]:
        return (one for one in rounds if wanted[one.row])

    numbers = np.array([one.user for one in rounds], dtype=np.intp)
    times = np.array([one.at_ms for one in rounds])
    shown = [one.request.candidates[one.chosen].category for one in rounds]
    of_rounds = Rounds(numbers, times, read, impressions=Impressions(numbers, times, shown))
    return LoggedLives(of_rounds, np.array(propensities), np.concatenate(rewards), chosen)


def write_log(folder: Path, users: Iterable[User], policy: Policy[Any]) -> None:
    """As the service writes it; rewards come a second apart, when all of it is over."""
    seconds = count(2 * _START_MS // 1000)
    log = DecisionLog(folder, lambda: float(next(seconds)))
    for user in users:
        server = Logging(policy)
        rewards = user.served_by(server, policy).rewards.tolist()
        for n, ((request, choice, at_ms), reward) in enumerate(zip(server.decisions, rewards, strict=True)):
            log.log_decision(policy, request, choice, n, _START_MS + at_ms)
            came = Reward(user_id=request.user_id, event_id=request.event_id, reward=reward)
            log.log_reward(policy.name, came, learned=True)
    log.close()


class _OpenLife(Life):
    """Says what would have come of everything that was offered, chosen or not."""

    def rewards(self, chosen: list[int]) -> Floats:
        for step, place in enumerate(chosen):
            self.show(step, place)
        utilities = (self.fixed + self._varying).tolist()
        return np.array([[self._outcome(step, one).reward for one in row] for step, row in enumerate(utilities)])


def gains_when_served(
    users: list[User], lives: LoggedLives, candidate: Policy[Any], states: Mapping[int, State], first: int
) -> Floats:
    """By user: what it gains if it really serves from that step on, and its own choices make the situations."""
    gains = []
    for number, user in enumerate(users):
        chosen = lives.chosen[number]
        served = user.served_by(FrozenAfter(candidate, states[number], chosen[:first]), candidate).rewards
        logged_ones = lives.rewards[number * user.steps : (number + 1) * user.steps]
        gains.append(float((served - logged_ones[np.arange(user.steps), chosen])[first:].mean()))
    return np.array(gains)
