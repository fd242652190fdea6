"""Roll out a policy: it serves one simulated user for a whole life."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tipbench.core.errors import InvalidInput
from tipbench.core.identity import derived_seed
from tipbench.core.untrusted import shown
from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.history import History
from tipbench.recommender.policies.catalog import POLICIES, name_of, policy_of, prior_of
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.prior.interface import ReadPrior
from tipbench.recommender.records import Candidate, Context, Profile, Request
from tipbench.recommender.simulation.popularity import MOST_POPULAR, MostPopular
from tipbench.recommender.simulation.user_model import Draws, Life, Outcome
from tipbench.recommender.simulation.world import Persona, World

ProfileKind = Literal["by-category", "flat"]
PriorKind = Literal["none", "fitted", "permuted", "turned", "shuffled"]  # docs: simulated_prior.py
_HOUR_MS = 3_600_000


# Arms: a policy, and the kind of profile it gets of the user.


@dataclass(frozen=True)
class SimulatedPrior:
    """A prior of the simulated world, from users whom a policy has served without a prior."""

    kind: PriorKind
    served_by: str


@dataclass(frozen=True)
class Arm:
    """One contender. `luck` distinguishes two arms of one policy: each gets its own random numbers, as two users do.

    With a `simulated_prior` it is simulated with a prior of the simulated world instead of its own.
    """

    name: str
    policy: Policy[Any]
    profile: ProfileKind = "by-category"
    luck: str = ""
    simulated_prior: SimulatedPrior | None = None


@dataclass(frozen=True)
class PermutedRows:
    """Computes rows of features in which some dimensions are shuffled among the candidates."""

    features: Features
    dimensions: tuple[int, ...]

    def __call__(self, request: Request) -> list[list[float]]:
        rows = self.features.rows(request)
        parts = [[row[position] for position in self.dimensions] for row in rows]
        random.Random(derived_seed("placebo", request.user_id, request.event_id)).shuffle(parts)
        for row, part in zip(rows, parts, strict=True):
            for position, value in zip(self.dimensions, part, strict=True):
                row[position] = value
        return rows


# with its own luck: over HTTP it must not share its users with the arm of the same policy
FLAT = Arm("egreedy/v2-flat", POLICIES["egreedy/v2"], profile="flat", luck="-flat")
ARMS = {**{name: Arm(name, policy) for name, policy in POLICIES.items()}, FLAT.name: FLAT}
ARM_NAMES = (*ARMS, MOST_POPULAR)


def placebo_of(candidate: Arm, incumbent: Arm) -> Arm | None:
    """Return the candidate with its new dimensions, which the incumbent lacks, shuffled among the tips.

    They have the same size and variance, but carry no information. None if there are no new dimensions.
    """
    new = [name for name in candidate.policy.features.names if name not in incumbent.policy.features.names]
    return with_permuted(candidate, new, f"{candidate.name}-placebo") if new else None


def with_permuted(arm: Arm, names: Sequence[str], called: str) -> Arm:
    """Return the arm with these dimensions shuffled among the tips of each request.

    A prior's rewards of tips are filled in later; they are shuffled if the arm has the prior `shuffled`.
    """
    features = arm.policy.features
    permuted = PermutedRows(features, tuple(features.names.index(name) for name in names))
    placebo = Features(f"{features.version}-placebo", features.names, permuted)
    return replace(arm, name=called, policy=arm.policy.with_features(placebo))


def arm(name: str, read_prior: ReadPrior | None = None, world: World | None = None) -> Arm:
    """Return the arm of a name, or of the identity of a policy with a prior; raise InvalidInput if there is none.

    Which tips are popular depends on the world.
    """
    if world and name == MOST_POPULAR:
        return Arm(name, MostPopular(world=world))
    if read_prior and prior_of(name) and name_of(name) in POLICIES:
        return Arm(name, policy_of(name, read_prior))
    if name not in ARMS:
        raise InvalidInput(f"there is no policy {shown(name)} to simulate; there are {', '.join(ARM_NAMES)}")
    return ARMS[name]


class Server(Protocol):
    """What serves a simulated user: a policy in this process, or the service over HTTP."""

    def choose(self, request: Request, at_ms: int) -> int:
        """Return the position of the chosen candidate. `at_ms` is the simulated time, since the life began."""
        ...

    def learn(self, request: Request, reward: float) -> None:
        """Learn the reward of a request that was chosen for before; others may have been chosen for since."""
        ...


class InProcess:
    """Calls the policy directly, with its state in memory."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy
        self._state = policy.new_state()
        self._pending: dict[str, tuple[Floats, int]] = {}  # by event: what was seen, and when

    def choose(self, request: Request, at_ms: int) -> int:
        generator = EventRng(self._policy.name, request.user_id, request.event_id)
        choice = self._policy.choose(self._state, request, generator, at_ms)
        self._policy.show(self._state, request.candidates[choice.position].category, at_ms)
        self._pending[request.event_id] = choice.seen, at_ms
        return choice.position

    def learn(self, request: Request, reward: float) -> None:
        seen, at_ms = self._pending.pop(request.event_id)
        self._policy.learn(self._state, seen, reward, at_ms)


@dataclass(frozen=True)
class Trajectory:
    """What happened in a life; one value per step."""

    chosen: NDArray[np.intp]
    rewards: Floats
    completed: NDArray[np.bool_]
    dismissed: NDArray[np.bool_]
    expected: Floats
    best: Floats

    @property
    def regrets(self) -> Floats:
        """Expected regret against an oracle in the same situation; never negative."""
        return self.best - self.expected


def roll_out(world: World, persona: Persona, seed: int, draws: Draws, arm: Arm, server: Server) -> Trajectory:
    """Let an arm serve a user of a persona for the whole life in `draws`.

    It learns a reward when that arrives, and so does the profile; one that never arrives counts for the user alone.
    """
    life, steps, due = Life(world, draws), len(draws.luck), draws.due()
    history = History(persona.profile_features or Profile())
    requests = _RequestBuilder(world, draws, f"{persona.name}-{seed}{arm.luck}")
    scored: list[tuple[Request, int, Outcome]] = []
    chosen = np.zeros(steps, dtype=np.intp)
    rewards = np.zeros(steps)
    completed, dismissed = np.zeros(steps, dtype=np.bool_), np.zeros(steps, dtype=np.bool_)
    for step in range(steps):
        profile = history.profile() if arm.profile == "by-category" else history.flat_profile()
        request = requests.build(step, life.hours_since_shown(step), profile)
        position = server.choose(request, requests.at_ms[step])
        outcome = life.show(step, position)
        scored.append((request, position, outcome))
        for past, shown_position, came in (scored[number] for number in due[step]):
            server.learn(past, came.reward)
            history.observe(past.candidates[shown_position].category, came.reaction, past.context.hour, came.dwell_s)
        chosen[step], rewards[step] = position, outcome.reward
        completed[step], dismissed[step] = outcome.reaction == "completed", outcome.reaction == "dismissed"
    expected, best = life.expected()
    return Trajectory(chosen, rewards, completed, dismissed, expected, best)


class _RequestBuilder:
    """Builds the requests of one life."""

    def __init__(self, world: World, draws: Draws, user_id: str) -> None:
        tips = draws.tips
        columns = zip(
            *(column.tolist() for column in (tips.category, tips.length, tips.effort_min, tips.judged)), strict=True
        )
        self._user_id = user_id
        self._never_shown = [
            Candidate(
                id=f"tip-{number}",
                category=world.categories[category],
                len_chars=length,
                effort_min=effort,
                judged=judged,  # NaN becomes None
            )
            for number, (category, length, effort, judged) in enumerate(columns)
        ]
        self.at_ms: list[int] = [round(hours * _HOUR_MS) for hours in draws.at_hours.tolist()]
        self._hours = draws.hours.tolist()
        self._focus = [None if focus < 0 else world.categories[focus] for focus in draws.focus.tolist()]
        self._offered = draws.offered.tolist()

    def build(self, step: int, since: list[float | None], profile: Profile) -> Request:
        offered = zip(self._offered[step], since, strict=True)
        return Request(
            user_id=self._user_id,
            event_id=f"e{step}",
            context=Context(hour=self._hours[step], focus_category=self._focus[step]),
            candidates=tuple(_with_hours_since_shown(self._never_shown[tip], hours) for tip, hours in offered),
            profile_features=profile,
        )


def _with_hours_since_shown(tip: Candidate, hours: float | None) -> Candidate:
    if hours is None:
        return tip
    return Candidate(
        id=tip.id,
        category=tip.category,
        len_chars=tip.len_chars,
        effort_min=tip.effort_min,
        hours_since_shown=hours,
        judged=tip.judged,
    )
