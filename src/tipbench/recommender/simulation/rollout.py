"""A policy serves one simulated user for a whole life."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.history import History
from tipbench.recommender.policies.chance import EventRng
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.records import Candidate, Context, Profile, Request
from tipbench.recommender.simulation.arms import Arm
from tipbench.recommender.simulation.draws import Draws
from tipbench.recommender.simulation.user_model import Life
from tipbench.recommender.simulation.world import Persona, World


class Server(Protocol):
    """What answers: the policies in this process, or the service over HTTP."""

    def choose(self, request: Request) -> int:
        """The place of the chosen candidate."""
        ...

    def learn(self, request: Request, reward: float) -> None: ...


class InProcess:
    """The policy's own two verbs, and the state in memory."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy
        self._state = policy.new_state()
        self._seen: Floats = np.empty(0)

    def choose(self, request: Request) -> int:
        generator = EventRng(self._policy.name, request.user_id, request.event_id)
        choice = self._policy.choose(self._state, request, generator)
        self._seen = choice.seen
        return choice.place

    def learn(self, request: Request, reward: float) -> None:  # noqa: ARG002
        self._policy.learn(self._state, self._seen, reward)


@dataclass(frozen=True)
class Trajectory:
    """What happened, a value a step."""

    chosen: NDArray[np.intp]
    rewards: Floats
    completed: NDArray[np.bool_]
    dismissed: NDArray[np.bool_]
    expected: Floats
    best: Floats

    @property
    def regrets(self) -> Floats:
        """Against an oracle in the same situation, in what was to be expected: never below 0."""
        return self.best - self.expected


def play(world: World, persona: Persona, seed: int, draws: Draws, arm: Arm, server: Server) -> Trajectory:
    life, history, steps = Life(world, persona, draws), History(), len(draws.luck)
    asking = _Asking(world, draws, f"{persona.name}-{seed}{arm.luck}")
    chosen = np.zeros(steps, dtype=np.intp)
    rewards = np.zeros(steps)
    completed, dismissed = np.zeros(steps, dtype=np.bool_), np.zeros(steps, dtype=np.bool_)
    for step in range(steps):
        told = history.profile() if arm.told == "by-category" else history.flat_profile()
        request = asking.request(step, life.hours_since_shown(step), told)
        place = server.choose(request)
        outcome = life.show(step, place)
        server.learn(request, outcome.reward)
        history.observe(request.candidates[place].category, outcome.reaction, request.context.hour, outcome.dwell_s)
        chosen[step], rewards[step] = place, outcome.reward
        completed[step], dismissed[step] = outcome.reaction == "completed", outcome.reaction == "dismissed"
    expected, best = life.expected()
    return Trajectory(chosen, rewards, completed, dismissed, expected, best)


class _Asking:
    """Makes the requests of one life."""

    def __init__(self, world: World, draws: Draws, user_id: str) -> None:
        tips = draws.tips
        columns = zip(tips.category.tolist(), tips.length.tolist(), tips.effort_min.tolist(), strict=True)
        self._user_id = user_id
        self._never_shown = [
            Candidate(id=f"tip-{number}", category=world.categories[category], len_chars=length, effort_min=effort)
            for number, (category, length, effort) in enumerate(columns)
        ]
        self._hours = draws.hours.tolist()
        self._focus = [None if focus < 0 else world.categories[focus] for focus in draws.focus.tolist()]
        self._offered = draws.offered.tolist()

    def request(self, step: int, since: list[float | None], profile: Profile) -> Request:
        offered = zip(self._offered[step], since, strict=True)
        return Request(
            user_id=self._user_id,
            event_id=f"e{step}",
            context=Context(hour=self._hours[step], focus_category=self._focus[step]),
            candidates=tuple(_shown(self._never_shown[tip], hours) for tip, hours in offered),
            profile_features=profile,
        )


def _shown(tip: Candidate, hours: float | None) -> Candidate:
    if hours is None:
        return tip
    return Candidate(
        id=tip.id, category=tip.category, len_chars=tip.len_chars, effort_min=tip.effort_min, hours_since_shown=hours
    )
